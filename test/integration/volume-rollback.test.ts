/** A volume that is set back to an older copy of itself, under followers that have seen what came after that copy. */

import { cp, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import {
  type DavitBootProcess,
  type DavitProcess,
  startDavit,
  startDavitBoot,
  storeOf,
} from "../../tools/davit-process.ts";

const mac = "52:54:00:a1:9c:ae";
const soon = { timeout: 30_000 };
const limitMs = 120_000;

const objectsWith = (profile: "disk" | "install") =>
  ["disk", "install"]
    .map(
      (name) => `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: ${name}}
spec: {boot: {kernel: /assets/${name}}}
---
`,
    )
    .join("") +
  `apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: node}
spec: {profileRef: {name: ${profile}}, selector: {matchLabels: {mac: "${mac}"}}}
`;

let folder: string;
const running: DavitBootProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-rollback-"));
  await mkdir(join(folder, "manifests"));
  await writeObjects("disk");
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((davit) => davit.stop()));
  await rm(folder, { recursive: true });
});

async function writeObjects(profile: "disk" | "install"): Promise<void> {
  await writeFile(join(folder, "next.yaml"), objectsWith(profile));
  await rename(join(folder, "next.yaml"), join(folder, "manifests/objects.yaml"));
}

async function serve(args: readonly string[] = []): Promise<DavitProcess> {
  const davit = await startDavit({ manifests: join(folder, "manifests"), dataDir: join(folder, "data"), args });
  running.push(davit);
  return davit;
}

/** Which Profile the machine gets, or the status. */
async function bootOf({ bootUrl }: DavitBootProcess): Promise<string> {
  const response = await fetch(`${bootUrl}/ipxe?mac=${mac}`);
  const text = await response.text();
  return /assets\/(\w+)/.exec(text)?.[1] ?? String(response.status);
}

async function writeKeys({ storeUrl }: DavitProcess, count: number): Promise<void> {
  for (let number = 0; number < count; number++) {
    const response = await fetch(`${storeUrl}/v2/keys/others/${number}?value=x`, { method: "PUT" });
    expect(response.status).toBeLessThan(300);
  }
}

it("leaves no document of the lost history in a follower, once other writes are as far", {
  timeout: limitMs,
}, async () => {
  const before = await serve();
  const address = ["--store-address", new URL(before.storeUrl).host];
  await before.stop();
  await cp(join(folder, "data"), join(folder, "snapshot"), { recursive: true });

  const lost = await serve(address);
  const follower = await startDavitBoot(storeOf(lost));
  running.push(follower);
  expect(await bootOf(follower)).toBe("disk");
  await writeObjects("install");
  await expect.poll(() => bootOf(follower), soon).toBe("install");
  await lost.stop();

  // Volume and manifests go back to that day; the follower comes again when the index is past what it has seen.
  process.kill(follower.pid, "SIGSTOP");
  await rm(join(folder, "data"), { recursive: true });
  await cp(join(folder, "snapshot"), join(folder, "data"), { recursive: true });
  await writeObjects("disk");
  const restored = await serve(address);
  expect(await bootOf(restored)).toBe("disk");
  await writeKeys(restored, 20);
  process.kill(follower.pid, "SIGCONT");
  await expect.poll(() => bootOf(follower), soon).toBe("disk");
});
