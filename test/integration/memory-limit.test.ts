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
const limited = `data:text/javascript,process.constrainedMemory=()=>${1_024 * mebibyte}`;

/** The limit that the chart gives the heap of \`davit serve\`. */
const chartHeapMebibytes = 535;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-memory-"));
  await mkdir(join(folder, "assets"));
});
afterEach(() => rm(folder, { recursive: true }));

/** Starts davit, ends it, and returns its warning about memory. */
async function warningWith(cacheBytes: number, nodeArgs: readonly string[], more: readonly string[] = []) {
  const args = [...more, "--assets-dir", join(folder, "assets"), "--limit", `assets-cache-bytes=${cacheBytes}`];
  const davit = await startDavit({ manifests, dataDir: join(folder, "data"), args, nodeArgs });
  await davit.stop();
  return davit.log.find(({ msg }) => String(msg).startsWith("the memory limit is less"));
}

it("warns if a full heap and a full cache need more than the limit, with what to do", {
  timeout: limitMs,
}, async () => {
  const heap = ["--max-old-space-size=256", "--max-semi-space-size=16"];
  const warning = await warningWith(256 * mebibyte, [...heap, "--import", limited]);
  expect(warning).toMatchObject({ level: 40, memoryLimitMiB: 1_024, heapMiB: 304, assetsCacheMiB: 256 });
  expect(warning?.msg).toContain("lower --limit assets-cache-bytes, or set NODE_OPTIONS=--max-old-space-size=MIB");
});

it("says nothing if they fit, or if there is no limit", { timeout: limitMs }, async () => {
  const heap = ["--max-old-space-size=96", "--max-semi-space-size=16"];
  expect(await warningWith(64 * mebibyte, [...heap, "--import", limited])).toBeUndefined();
  expect(await warningWith(1_024 * mebibyte, heap)).toBeUndefined();
});

it("counts the heap of each boot thread", { timeout: limitMs }, async () => {
  const heap = ["--max-old-space-size=256", "--max-semi-space-size=16", "--import", limited];
  const warning = await warningWith(64 * mebibyte, heap, ["--boot-threads", "2"]);
  expect(warning).toMatchObject({ memoryLimitMiB: 1_024, heapMiB: 304, assetsCacheMiB: 64, bootThreads: 2 });
  expect(warning?.msg).toContain("lower --boot-threads");
});

it("tries manifests of the console in little memory, and refuses what needs more", { timeout: limitMs }, async () => {
  const nodeArgs = ["--max-semi-space-size=16", `--max-old-space-size=${chartHeapMebibytes}`];
  const davit = await startDavit({ manifests, dataDir: join(folder, "data"), nodeArgs });
  const url = `${davit.opsUrl}/console/try`;
  const ask = async (manifest: string) => {
    const form = /name="form" value="([^"]+)"/.exec(await (await fetch(url)).text())?.[1] ?? "";
    const body = new URLSearchParams({ form, manifest, labels: "role=try" });
    const answer = await fetch(url, { method: "POST", body, headers: { origin: davit.opsUrl } });
    return await answer.text();
  };
  for (let count = 0; count < 3; count += 1) expect(await ask(largeConfigs)).toContain("/generic/p31</code> 200");
  expect(await ask(manyValues)).toContain(
    "davit ended the attempt: with the present objects, the manifest needs too much memory",
  );
  expect(await ask(largeConfigs)).toContain("/generic/p31</code> 200");
  expect(await peakMebibytes(davit.pid)).toBeLessThan(800);
  expect(await davit.stop()).toBe(0);
});

/** A Profile with 32 configs of 16 MB each in memory. */
const largeConfigs = `apiVersion: davit.dev/v1alpha1
kind: Group
metadata: { name: try }
spec:
  profileRef: { name: try }
  priority: 900
  selector: { matchLabels: { role: try } }
  metadata:
    list: [${"1,".repeat(80)}]
    long: "${"x".repeat(100_000)}\u4e2d"
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: { name: try }
spec:
  genericParts:
${Array.from({ length: 32 }, (_, at) => `    - { name: p${at}, inline: "{{#each list}}{{../long}}{{/each}}" }`).join("\n")}
`;

/** Nearly as many values as a manifest may have. */
const manyValues = `apiVersion: davit.dev/v1alpha1
kind: Group
metadata: { name: try }
spec:
  profileRef: { name: try }
  selector: { matchLabels: { role: try } }
  metadata: { list: [${"1,".repeat(145_000)}] }
`;

async function peakMebibytes(pid: number | undefined): Promise<number> {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;
}

it("a thread that allocates without end ends at its own limit, and davit continues", { timeout: limitMs }, async () => {
  // The chart sets the heap's limit like this. The thread of trials has a limit of 200 MiB.
  const variables = { NODE_OPTIONS: "--max-old-space-size=1500" };
  const eater = 'if (process.argv[1]?.includes("trial-worker")) for (const all = []; ;) all.push(Array(1e5).fill(0.5))';
  const nodeArgs = ["--max-semi-space-size=16", "--import", `data:text/javascript,${encodeURIComponent(eater)}`];
  const davit = await startDavit({ manifests, dataDir: join(folder, "data"), nodeArgs, variables });
  const lost = () => davit.log.some(({ msg }) => msg === "a trial rendering did not end");
  await expect.poll(lost, { timeout: limitMs / 2 }).toBe(true);
  expect(await peakMebibytes(davit.pid)).toBeLessThan(500);
  const answer = await fetch(`${davit.bootUrl}/ipxe?mac=52-54-00-a1-9c-ae`);
  expect(await answer.text()).toContain("davit.role=lookout");
  expect(await davit.stop()).toBe(0);
});
