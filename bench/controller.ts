/**
 * `make bench-controller`: how soon a change in a cluster is what machines get, beside a real API server. davit is a
 * process of its own, as its image runs it. `--profiles`, `--groups`, `--shared` and `--changes` take smaller numbers for
 * a first look.
 *
 * `shared` Groups name one Profile, the others one each, in turn.
 */

import { parseArgs } from "node:util";
import { systemClock } from "../src/lib/clock.ts";
import { createAll, machineGroup, pathOf, profile, readyCount, setKernel } from "../test/cluster/machines.ts";
import { Rack } from "../test/cluster/rack.ts";
import { imageProgram } from "../test/helpers/image-program.ts";
import { percentile } from "../tools/benchmarks/statistics.ts";
import { missingTools, toolPath } from "../tools/build/tools.ts";
import { type Cluster, startCluster } from "../tools/cluster/cluster.ts";
import { cpuMicrosecondsOf, residentBytesOf } from "./process-usage.ts";
import { type AddFigure, runBenchmark, versionOf } from "./run.ts";

const { values } = parseArgs({
  options: {
    profiles: { type: "string", default: "2000" },
    groups: { type: "string", default: "8000" },
    shared: { type: "string", default: "5000" },
    changes: { type: "string", default: "500" },
    quiet: { type: "string", default: "60" },
  },
});
const profileCount = Number(values.profiles);
const groupCount = Number(values.groups);
const sharedCount = Number(values.shared);
const changeCount = Number(values.changes);
const quietSeconds = Number(values.quiet);
const pollMs = 1;

if (missingTools().length > 0) {
  process.stderr.write('There is no API server: run "make cluster-tools" first\n');
  process.exitCode = 1;
} else {
  await runBenchmark({
    name: "controller",
    settings: {
      Profiles: profileCount,
      Groups: groupCount,
      "Groups of one Profile": sharedCount,
      changes: changeCount,
      "s of quiet": quietSeconds,
    },
    peers: { "kube-apiserver": versionOf(toolPath("kube-apiserver"), "--version") },
    measure,
  });
}

/** A goal: the most that davit may take. */
const most = (atMost: number) => ({ of: "davit", atMost }) as const;

async function measure(add: AddFigure): Promise<void> {
  const cluster = await startCluster();
  try {
    await fill(cluster);
    const startedMs = systemClock.monotonicMs();
    const rack = await Rack.start({ kubeconfig: cluster.kubeconfig, ...imageProgram() });
    try {
      await firstSync(cluster, rack, { startedMs, add });
      await singleChanges(cluster, rack, add);
      await sharedChange(cluster, rack, add);
      await quietTime(rack, add);
    } finally {
      await rack.stop();
    }
  } finally {
    await cluster.stop();
  }
}

async function fill(cluster: Cluster): Promise<void> {
  const names = Array.from({ length: profileCount }, (_, at) => profileName(at));
  await createAll(cluster, [
    profile("shared", "shared-0"),
    ...names.slice(1).map((name) => profile(name, `${name}-0`)),
  ]);
  const groups = Array.from({ length: groupCount }, (_, at) => machineGroup(at, profileOf(at)));
  await createAll(cluster, groups);
}

function profileName(at: number): string {
  return `profile-${at}`;
}

/** The first Groups share one; number 0 is in the place of that one. */
function profileOf(group: number): string {
  return group < sharedCount ? "shared" : profileName(1 + ((group - sharedCount) % (profileCount - 1)));
}

async function firstSync(
  cluster: Cluster,
  rack: Rack,
  { startedMs, add }: { readonly startedMs: number; readonly add: AddFigure },
): Promise<void> {
  const servedMs = systemClock.monotonicMs() - startedMs;
  let peakBytes = residentBytesOf(rack.davit.pid);
  const total = profileCount + groupCount;
  // Each object is written at least once. To list 10,000 of them meanwhile would keep the API server from its work.
  while ((await writeCount(rack)) < total) {
    peakBytes = Math.max(peakBytes, residentBytesOf(rack.davit.pid));
    await systemClock.sleep(100);
  }
  while ((await readyCounts(cluster)) < total) await systemClock.sleep(250);
  const statusMs = systemClock.monotonicMs() - startedMs;
  peakBytes = Math.max(peakBytes, residentBytesOf(rack.davit.pid));
  const cpu = { unit: "s", davit: [cpuMicrosecondsOf(rack.davit.pid) / 1e6] };
  const what = "first sync";
  add({ what: `${what}: machines are answered`, unit: "s", davit: [servedMs / 1_000], goal: most(10) });
  add({ what: `${what}: every object says Ready`, unit: "s", davit: [statusMs / 1_000], goal: most(60), cpu });
  const memory = { unit: "MiB", davit: [peakBytes / 2 ** 20], goal: most(400) };
  add({
    what: `${what}: memory at most`,
    ...memory,
    headline: `memory during the first sync of ${total.toLocaleString("en")} objects`,
  });
}

async function writesLeft(rack: Rack): Promise<number> {
  return await rack.metric("workqueue_depth");
}

async function writeCount(rack: Rack): Promise<number> {
  return await rack.metric("rest_client_requests_total", 'method="PATCH"');
}

async function readyCounts(cluster: Cluster): Promise<number> {
  return (
    (await readyCount(cluster, pathOf(cluster, "profiles"))) + (await readyCount(cluster, pathOf(cluster, "groups")))
  );
}

/** One after the other, each in the Profile of another machine, until that machine gets it. */
async function singleChanges(cluster: Cluster, rack: Rack, add: AddFigure): Promise<void> {
  const durationsMs: number[] = [];
  for (let change = 0; change < changeCount; change++) {
    const machine = sharedCount + (change % (groupCount - sharedCount));
    const kernel = `change-${change}`;
    await setKernel(cluster, profileOf(machine), kernel);
    durationsMs.push(await durationOf(() => untilBoots(rack, machine, kernel)));
  }
  const what = "of the PATCHes reach `/ipxe` within";
  add({ what: `half ${what}`, unit: "ms", davit: [percentile(durationsMs, 50)] });
  add({
    what: `99 % ${what}`,
    unit: "ms",
    davit: [percentile(durationsMs, 99)],
    goal: most(250),
    headline: "99 % of the PATCHes of objects reach machines within",
  });
}

/** A Profile that thousands of Groups name, while other machines ask. */
async function sharedChange(cluster: Cluster, rack: Rack, add: AddFigure): Promise<void> {
  const waitsMs: number[] = [];
  const asking = new AbortController();
  const others = askAlways(rack, waitsMs, asking.signal);
  await setKernel(cluster, "shared", "shared-1");
  const startedMs = systemClock.monotonicMs();
  for (const machine of [0, Math.floor(sharedCount / 2), sharedCount - 1]) await untilBoots(rack, machine, "shared-1");
  const servedMs = systemClock.monotonicMs() - startedMs;
  while (!(await isObserved(cluster))) await systemClock.sleep(50);
  const statusMs = systemClock.monotonicMs() - startedMs;
  asking.abort();
  await others;
  const what = "a Profile of many Groups changes";
  add({ what: `${what}: new bytes`, unit: "s", davit: [servedMs / 1_000], goal: most(3) });
  add({ what: `${what}: conditions`, unit: "s", davit: [statusMs / 1_000], goal: most(60) });
  const waits = { unit: "ms", davit: [percentile(waitsMs, 99)], goal: most(50) };
  add({ what: `${what}: 99 % of boot requests meanwhile within`, ...waits });
}

async function isObserved(cluster: Cluster): Promise<boolean> {
  const { body } = await cluster.ask({ path: `${pathOf(cluster, "profiles")}/shared` });
  const { generation } = body.metadata as { generation?: number };
  const { observedGeneration } = body.status as { observedGeneration?: number };
  return generation === observedGeneration;
}

async function askAlways(rack: Rack, waitsMs: number[], signal: AbortSignal): Promise<void> {
  for (let at = 0; !signal.aborted; at++) {
    waitsMs.push(await durationOf(() => rack.boots(at % groupCount)));
    await systemClock.sleep(pollMs);
  }
}

/** What davit writes while nothing happens. */
async function quietTime(rack: Rack, add: AddFigure): Promise<void> {
  while ((await writesLeft(rack)) > 0) await systemClock.sleep(100);
  await systemClock.sleep(5_000);
  const before = await writesOf(rack);
  await systemClock.sleep(quietSeconds * 1_000);
  const writes = (await writesOf(rack)) - before;
  add({ what: "writes to the API server while it is quiet", unit: "", davit: [writes], goal: most(0) });
  add({ what: "memory then", unit: "MiB", davit: [residentBytesOf(rack.davit.pid) / 2 ** 20], goal: most(400) });
}

async function writesOf(rack: Rack): Promise<number> {
  return (await writeCount(rack)) + (await rack.metric("rest_client_requests_total", 'method="POST"'));
}

async function untilBoots(rack: Rack, machine: number, kernel: string): Promise<void> {
  while ((await rack.boots(machine)) !== kernel) await systemClock.sleep(pollMs);
}

async function durationOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = systemClock.monotonicMs();
  await work();
  return systemClock.monotonicMs() - startedMs;
}
