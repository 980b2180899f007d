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
import { missingTools } from "../tools/build/tools.ts";
import { type Cluster, startCluster } from "../tools/cluster/cluster.ts";
import { residentBytesOf } from "./process-usage.ts";
import { load, mebibytes, print } from "./report.ts";
import { percentile } from "./statistics.ts";

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

interface Row {
  readonly what: string;
  readonly found: string;
  readonly target: string;
}

if (missingTools().length > 0) {
  process.stderr.write('There is no API server: run "make cluster-tools" first\n');
  process.exitCode = 1;
} else {
  await main();
}

async function main(): Promise<void> {
  const rows: Row[] = [];
  const cluster = await startCluster();
  try {
    const filledMs = await durationOf(() => fill(cluster));
    print(`${profileCount} Profiles and ${groupCount} Groups written in ${seconds(filledMs)}; ${load()}`);
    const startedMs = systemClock.monotonicMs();
    const rack = await Rack.start({ kubeconfig: cluster.kubeconfig, ...imageProgram() });
    try {
      rows.push(...(await firstSync(cluster, rack, startedMs)));
      rows.push(...(await singleChanges(cluster, rack)));
      rows.push(...(await sharedChange(cluster, rack)));
      rows.push(...(await quietTime(rack)));
    } finally {
      await rack.stop();
    }
  } finally {
    await cluster.stop();
  }
  print(`\n| what | found | target |\n|---|---|---|`);
  for (const { what, found, target } of rows) print(`| ${what} | ${found} | ${target} |`);
  print(`\n${load()}`);
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

async function firstSync(cluster: Cluster, rack: Rack, startedMs: number): Promise<readonly Row[]> {
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
  return [
    { what: "first sync: machines are answered", found: seconds(servedMs), target: "10 s" },
    { what: "first sync: every object says Ready", found: seconds(statusMs), target: "60 s" },
    { what: "first sync: resident memory, at most", found: mebibytes(peakBytes), target: "400 MiB" },
  ];
}

async function writesLeft(rack: Rack): Promise<number> {
  return await rack.metric("workqueue_depth");
}

async function writeCount(rack: Rack): Promise<number> {
  return await rack.metric("rest_client_requests_total", 'method="PATCH"');
}

async function readyCounts(cluster: Cluster): Promise<number> {
  return (await readyCount(cluster, pathOf.profiles)) + (await readyCount(cluster, pathOf.groups));
}

/** One after the other, each in the Profile of another machine, until that machine gets it. */
async function singleChanges(cluster: Cluster, rack: Rack): Promise<readonly Row[]> {
  const durationsMs: number[] = [];
  for (let change = 0; change < changeCount; change++) {
    const machine = sharedCount + (change % (groupCount - sharedCount));
    const kernel = `change-${change}`;
    await setKernel(cluster, profileOf(machine), kernel);
    durationsMs.push(await durationOf(() => untilBoots(rack, machine, kernel)));
  }
  const found = `p50 ${milliseconds(percentile(durationsMs, 50))}, p99 ${milliseconds(percentile(durationsMs, 99))}`;
  return [{ what: `answer to a PATCH until /ipxe has it, ${changeCount} changes`, found, target: "p99 250 ms" }];
}

/** A Profile that thousands of Groups name, while other machines ask. */
async function sharedChange(cluster: Cluster, rack: Rack): Promise<readonly Row[]> {
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
  const what = `a Profile of ${sharedCount} Groups changes`;
  return [
    { what: `${what}: new bytes`, found: seconds(servedMs), target: "3 s" },
    { what: `${what}: conditions`, found: seconds(statusMs), target: "60 s" },
    {
      what: `${what}: boot requests meanwhile`,
      found: `p99 ${milliseconds(percentile(waitsMs, 99))}`,
      target: "50 ms",
    },
  ];
}

async function isObserved(cluster: Cluster): Promise<boolean> {
  const { body } = await cluster.ask({ path: `${pathOf.profiles}/shared` });
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
async function quietTime(rack: Rack): Promise<readonly Row[]> {
  while ((await writesLeft(rack)) > 0) await systemClock.sleep(100);
  await systemClock.sleep(5_000);
  const before = await writesOf(rack);
  await systemClock.sleep(quietSeconds * 1_000);
  const found = `${(await writesOf(rack)) - before}`;
  const memory = mebibytes(residentBytesOf(rack.davit.pid));
  return [
    { what: `writes to the API server in ${quietSeconds} s of quiet`, found, target: "0" },
    { what: "resident memory then", found: memory, target: "400 MiB" },
  ];
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

function seconds(durationMs: number): string {
  return `${(durationMs / 1_000).toFixed(1)} s`;
}

function milliseconds(durationMs: number): string {
  return `${durationMs.toFixed(0)} ms`;
}
