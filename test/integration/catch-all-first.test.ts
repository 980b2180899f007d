/**
 * Whoever fills a directory or a cluster may begin with the catch-all that installs; the Groups that name machines come
 * a moment later. Until then nobody is installed by it.
 */

import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { freePorts } from "../../tools/cluster/ports.ts";
import { type DavitBootProcess, startDavit, startDavitBoot } from "../../tools/davit-process.ts";
import { Poll } from "../cluster/poll.ts";

const patience = { timeout: 60_000 };
const limitMs = 120_000;

const document = (kind: string, name: string, spec: string) =>
  `apiVersion: davit.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: ${name}}\nspec: ${spec}\n`;

const everybody = [
  document("Profile", "disk", "{boot: {kernel: /assets/disk}}"),
  document("Profile", "install", "{effect: Install, boot: {kernel: /assets/install}}"),
  document("Group", "others", "{profileRef: {name: install}, matchAll: true}"),
].join("---\n");
const one = document("Group", "one", "{profileRef: {name: disk}, selector: {matchLabels: {serial: SN-1}}}");

let folder: string;
const running: DavitBootProcess[] = [];
const polls: Poll<string>[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "davit-first-"));
  mkdirSync(join(folder, "manifests"));
});
afterEach(async () => {
  for (const poll of polls.splice(0)) await poll.stop();
  for (const davit of running.splice(0).toReversed()) await davit.stop();
  rmSync(folder, { recursive: true });
});

/** A finished file takes the place of the old one. */
function write(name: string, text: string): void {
  writeFileSync(join(folder, name), text);
  renameSync(join(folder, name), join(folder, "manifests", name));
}

async function bootOf({ bootUrl }: DavitBootProcess, query: string): Promise<string> {
  const response = await fetch(`${bootUrl}/ipxe?${query}`);
  const text = await response.text();
  return response.status === 200 ? (/assets\/(\w+)/.exec(text)?.[1] ?? "") : text.trim();
}

const waiting = /^503 /;

interface Site {
  readonly follower: Promise<DavitBootProcess>;
  readonly serve: () => Promise<DavitBootProcess>;
}

/** A follower, and a store at an address of its own. The follower is answered as soon as there is a store. */
async function openSite(): Promise<Site> {
  const [port] = await freePorts(1);
  const address = `127.0.0.1:${port}`;
  const tokens = ["--store-token-file", join(folder, "tokens")];
  writeFileSync(join(folder, "tokens"), "a-token-of-both-0123\n", { mode: 0o600 });
  const places = { manifests: join(folder, "manifests"), dataDir: join(folder, "data") };
  const kept = async <Davit extends DavitBootProcess>(starting: Promise<Davit>) => {
    const davit = await starting;
    running.push(davit);
    return davit;
  };
  return {
    follower: kept(startDavitBoot(["--store", `http://${address}`, ...tokens])),
    serve: () => kept(startDavit({ ...places, args: ["--store-address", address, ...tokens] })),
  };
}

it("a catch-all that installs takes nobody in the first seconds, on a follower neither", {
  timeout: limitMs,
}, async () => {
  write("everybody.yaml", everybody);
  const site = await openSite();
  const davit = await site.serve();
  polls.push(Poll.of(() => bootOf(davit, "serial=SN-1")));
  write("one.yaml", one);
  const follower = await site.follower;
  polls.push(Poll.of(() => bootOf(follower, "serial=SN-1")));
  for (const each of [davit, follower]) {
    await expect.poll(() => bootOf(each, "serial=SN-1"), patience).toBe("disk");
    await expect.poll(() => bootOf(each, "serial=SN-2"), patience).toBe("install");
  }
  for (const poll of polls) {
    const answers = [...poll.answers()].filter((answer) => !waiting.test(answer));
    expect(answers).toEqual(["disk"]);
  }
});

it("so does one at a follower whose store was lost, and is filled anew", { timeout: limitMs }, async () => {
  write("everybody.yaml", everybody);
  write("one.yaml", one);
  const site = await openSite();
  const lost = await site.serve();
  const follower = await site.follower;
  await expect.poll(() => bootOf(follower, "serial=SN-1"), patience).toBe("disk");
  await expect.poll(() => bootOf(follower, "serial=SN-2"), patience).toBe("install");
  await lost.stop("SIGKILL");
  rmSync(join(folder, "data"), { recursive: true });
  rmSync(join(folder, "manifests", "one.yaml"));
  polls.push(Poll.of(() => bootOf(follower, "serial=SN-1")));
  const davit = await site.serve();
  // The follower has the new store.
  await expect.poll(() => bootOf(follower, "serial=SN-1"), patience).toMatch(/^(?!disk)/);
  await setTimeout(3_000);
  write("one.yaml", one);
  for (const each of [davit, follower]) {
    await expect.poll(() => bootOf(each, "serial=SN-1"), patience).toBe("disk");
    await expect.poll(() => bootOf(each, "serial=SN-2"), patience).toBe("install");
  }
  const answers = polls.flatMap((poll) => [...poll.answers()]).filter((answer) => !waiting.test(answer));
  expect(answers).toEqual(["disk"]);
});
