/** davit in a container, whose memory limit may be too small for its heap and its cache of assets. */

import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startDavit } from "../../tools/davit-process.ts";

const manifests = join(import.meta.dirname, "../../manifests/quickstart");
const limitMs = 90_000;
const mebibyte = 2 ** 20;
// Only the limit that the kernel reports is faked, because a test cannot make a cgroup on each computer.
const limited = `data:text/javascript,process.constrainedMemory=()=>${512 * mebibyte}`;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-memory-"));
  await mkdir(join(folder, "assets"));
});
afterEach(() => rm(folder, { recursive: true }));

/** Starts davit, ends it, and returns its warning about memory. */
async function warningWith(cacheBytes: number, nodeArgs: readonly string[]) {
  const args = ["--assets-dir", join(folder, "assets"), "--assets-cache-bytes", String(cacheBytes)];
  const davit = await startDavit({ manifests, dataDir: join(folder, "data"), args, nodeArgs });
  await davit.stop();
  return davit.log.find(({ msg }) => String(msg).startsWith("the memory limit is less"));
}

it("warns if a full heap and a full cache need more than the limit, with what to do", {
  timeout: limitMs,
}, async () => {
  const heap = ["--max-old-space-size=256", "--max-semi-space-size=16"];
  const warning = await warningWith(256 * mebibyte, [...heap, "--import", limited]);
  expect(warning).toMatchObject({ level: 40, memoryLimitMiB: 512, heapMiB: 304, assetsCacheMiB: 256 });
  expect(warning?.msg).toContain("lower --assets-cache-bytes, or set NODE_OPTIONS=--max-old-space-size=MIB");
});

it("says nothing if they fit, or if there is no limit", { timeout: limitMs }, async () => {
  const heap = ["--max-old-space-size=256", "--max-semi-space-size=16"];
  expect(await warningWith(64 * mebibyte, [...heap, "--import", limited])).toBeUndefined();
  expect(await warningWith(1_024 * mebibyte, heap)).toBeUndefined();
});
