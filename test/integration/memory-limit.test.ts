/** davit in a container whose memory limit may be too small, and threads that allocate more than their limit. */

import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
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
async function warningWith(cacheBytes: number, nodeArgs: readonly string[], more: readonly string[] = []) {
  const args = [...more, "--assets-dir", join(folder, "assets"), "--assets-cache-bytes", String(cacheBytes)];
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

it("counts the heap of each boot thread", { timeout: limitMs }, async () => {
  const heap = ["--max-old-space-size=256", "--max-semi-space-size=16", "--import", limited];
  const warning = await warningWith(64 * mebibyte, heap, ["--boot-threads", "2"]);
  expect(warning).toMatchObject({ memoryLimitMiB: 512, heapMiB: 304, assetsCacheMiB: 64, bootThreads: 2 });
  expect(warning?.msg).toContain("lower --boot-threads");
});

it("a thread that allocates without end ends at its own limit, and davit continues", { timeout: limitMs }, async () => {
  // The chart sets the heap's limit like this. The thread of trials has a limit of 520 MiB.
  const variables = { NODE_OPTIONS: "--max-old-space-size=1500" };
  const eater = 'if (process.argv[1]?.includes("trial-worker")) for (const all = []; ;) all.push(Array(1e5).fill(0.5))';
  const nodeArgs = ["--max-semi-space-size=16", "--import", `data:text/javascript,${encodeURIComponent(eater)}`];
  const davit = await startDavit({ manifests, dataDir: join(folder, "data"), nodeArgs, variables });
  const lost = () => davit.log.some(({ msg }) => msg === "a trial rendering did not end");
  await expect.poll(lost, { timeout: limitMs / 2 }).toBe(true);
  const peak = /^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${davit.pid}/status`, "utf8"))?.[1];
  expect(Number(peak)).toBeLessThan(1_000 * 1_024);
  const answer = await fetch(`${davit.bootUrl}/ipxe?mac=52-54-00-a1-9c-ae`);
  expect(await answer.text()).toContain("davit.role=lookout");
  expect(await davit.stop()).toBe(0);
});
