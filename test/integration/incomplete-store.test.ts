/** A store that begins anew beside a broken file, under a follower that has everything. */

import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type DavitBootProcess, type DavitProcess, startDavit, startDavitBoot } from "../../tools/davit-process.ts";

const soon = { timeout: 60_000 };
const limitMs = 180_000;

const profiles = `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: disk}
spec: {boot: {kernel: /assets/disk}}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: wipe}
spec: {effect: Install, boot: {kernel: /assets/wipe}}
---
`;
const group = (name: string, profile: string, labels: string) => `apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: ${name}}
spec: {profileRef: {name: ${profile}}, selector: {matchLabels: {${labels}}}}
`;
/** The machine's own Group, and one of its rack, which is less specific. */
const own = group("own", "disk", 'mac: "52:54:00:a1:9c:ae", serial: A1');
const rack = profiles + group("rack", "wipe", "serial: A1");

let folder: string;
const running: DavitBootProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-incomplete-"));
  await mkdir(join(folder, "manifests"));
  await write("rack.yaml", rack);
  await write("own.yaml", own);
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((davit) => davit.stop()));
  await rm(folder, { recursive: true });
});

async function write(file: string, text: string): Promise<void> {
  await writeFile(join(folder, "next"), text);
  await rename(join(folder, "next"), join(folder, "manifests", file));
}

async function serve(dataDir: string, args: readonly string[] = []): Promise<DavitProcess> {
  const davit = await startDavit({ manifests: join(folder, "manifests"), dataDir: join(folder, dataDir), args });
  running.push(davit);
  return davit;
}

/** Which Profile the machine gets, or the status. */
async function bootOf({ bootUrl }: DavitBootProcess): Promise<string> {
  const response = await fetch(`${bootUrl}/ipxe?mac=52:54:00:a1:9c:ae&serial=A1`);
  const text = await response.text();
  return /assets\/(\w+)/.exec(text)?.[1] ?? String(response.status);
}

async function readyOf({ opsUrl }: DavitBootProcess): Promise<string> {
  return await (await fetch(`${opsUrl}/readyz?verbose`)).text();
}

it("does not take the complete copy away, and installs nothing over the machine", { timeout: limitMs }, async () => {
  const tokens = ["--store-token-file", join(folder, "tokens")];
  await writeFile(join(folder, "tokens"), "a-token-of-both-0123\n", { mode: 0o600 });
  const davit = await serve("data", tokens);
  const args = [
    "--store",
    davit.storeUrl,
    ...tokens,
    "--copy-file",
    join(folder, "copy"),
    "--limit",
    "source-grace=100ms",
  ];
  const follower = await startDavitBoot(args);
  running.push(follower);
  expect(await bootOf(follower)).toBe("disk");
  await davit.stop();

  await write("own.yaml", own.replace("kind: Group", "kind: [Group"));
  const anew = await serve("other-data", ["--store-address", new URL(davit.storeUrl).host, ...tokens]);
  // Which Group the broken file holds cannot be known: an installer waits.
  expect(await bootOf(anew)).toBe("503");
  await expect.poll(() => readyOf(follower), soon).toContain("has not read everything");
  expect(await bootOf(follower)).toBe("disk");

  // Nor after a restart from the copy on disk.
  await follower.stop();
  const again = await startDavitBoot(args);
  running.push(again);
  expect(await bootOf(again)).toBe("disk");
  await expect.poll(() => readyOf(again), soon).toContain("has not read everything");
  expect(await bootOf(again)).toBe("disk");

  // The file is mended, now with another Profile: both follow.
  await write("own.yaml", own.replace("name: disk", "name: wipe"));
  await expect.poll(() => bootOf(anew), soon).toBe("wipe");
  await expect.poll(() => bootOf(again), soon).toBe("wipe");
});
