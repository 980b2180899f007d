/**
 * davit on three members of etcd, beside the v2 API of three members of etcd at their leader: requests per second, how
 * long a start takes, and what a snapshot does to writes. All processes are on one machine and one disk.
 */

import { type EtcdMembers, startEtcdV3 } from "../test/helpers/etcd-v3.ts";
import type { Goal } from "../tools/benchmarks/figures.ts";
import { percentile } from "../tools/benchmarks/statistics.ts";
import type { DavitProcess } from "../tools/davit-process.ts";
import { Child } from "./child.ts";
import { type DavitMembers, withDavits } from "./davit-members.ts";
import { requestText, sendAll } from "./raw-client.ts";
import type { AddFigure } from "./run.ts";
import type { LoadedPeer } from "./store-peers.ts";
import { loadSpeedKeys, measureSpeed, type SpeedOptions } from "./store-speed.ts";

const started = { bytes: 150 * 2 ** 20, valueBytes: 1_024 };
// A snapshot is taken when 64 MiB were logged; these are a little more.
const filler = { count: 1_056, form: `value=${"z".repeat(64 * 1_024)}` };
const probed = { keys: 1_000, intervalMs: 4 };
const quietMs = 10_000;

export async function benchMembers(options: SpeedOptions, add: AddFigure): Promise<void> {
  for (const davits of [1, 3]) {
    await benchSpeed(davits, options, ({ what, goal: _single, headline: _headline, ...figure }) => {
      const goal: Goal = figure.unit === "ms" ? { of: "ratio", atMost: 1.5 } : { of: "ratio", atLeast: 0.9 };
      add({ ...figure, what: `${what}, davits: ${davits}`, peer: "etcd x3", goal });
    });
  }
  await withDavits(1, (members) => benchSnapshot(members, options.rounds, add));
  await withDavits(1, (members) => benchStart(members, add));
}

/** The peer is the v2 API of three members, at their leader. */
async function benchSpeed(davits: number, options: SpeedOptions, add: AddFigure): Promise<void> {
  const reference = await startEtcdV3({ count: 3, args: ["--enable-v2=true"] });
  try {
    await withDavits(davits, async (members) => {
      const peers = [peerOf("davit", members.all[0]), peerOf("etcd", await leaderOf(reference))] as const;
      for (const peer of peers) await loadSpeedKeys(peer);
      await measureSpeed(peers, options, add);
    });
  } finally {
    await reference.stop();
  }
}

/** Writes at a steady rate, with and without a snapshot of 64 MiB beside them, in turns. */
async function benchSnapshot({ all }: DavitMembers, rounds: number, add: AddFigure): Promise<void> {
  const [davit] = all;
  if (davit === undefined) throw new Error("no davit");
  const probe = Child.start("pauses-child.ts");
  const keys = Array.from({ length: probed.keys }, (_, at) => `/v2/keys/many/${at % 1_000}/${at}`);
  await sendAll(
    davit.storeUrl,
    keys.map((key) => requestText("PUT", key, "value=1")),
  );
  await fill(davit);
  const found: { readonly quietMs: number; readonly besideMs: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    await pause(quietMs);
    const quiet = await putsBeside(probe, davit, () => pause(quietMs));
    const before = snapshotsOf(davit).length;
    await fill(davit);
    const beside = await putsBeside(probe, davit, async () => {
      while (snapshotsOf(davit).length === before) await pause(10);
    });
    found.push({ quietMs: percentile(quiet, 99), besideMs: percentile(beside, 99) });
  }
  await probe.stop();
  const sides = { davit: found.map(({ besideMs }) => besideMs), beside: found.map(({ quietMs }) => quietMs) };
  const what = "125 PUT a second beside a snapshot of 66 MiB: 99 % within";
  add({ what, peer: "without a snapshot", unit: "ms", ...sides, goal: { of: "ratio", atMost: 1.5 } });
}

async function putsBeside(probe: Child, { storeUrl: url }: DavitProcess, work: () => Promise<unknown>) {
  await probe.ask({ kind: "begin", url, ...probed }, () => undefined);
  await work();
  return await probe.ask({ kind: "end" }, (answer) => {
    const putsMs = typeof answer === "object" && answer !== null && "putsMs" in answer ? answer.putsMs : [];
    return Array.isArray(putsMs) ? putsMs.map(Number) : [];
  });
}

function snapshotsOf({ log }: DavitProcess) {
  return log.filter(({ msg }) => msg === "snapshot saved");
}

/** Writes as much as makes the leader take a snapshot, and waits until it is saved. */
export async function writeUntilSnapshot(leader: DavitProcess): Promise<void> {
  const before = snapshotsOf(leader).length;
  await fill(leader);
  while (snapshotsOf(leader).length === before) await pause(10);
}

async function fill({ storeUrl }: DavitProcess): Promise<void> {
  const targets = Array.from({ length: filler.count }, (_, at) => `/v2/keys/filler/${at}`);
  await sendAll(
    storeUrl,
    targets.map((target) => requestText("PUT", target, filler.form)),
  );
}

/** A store of 150 MiB: from the start of the process until davit serves. */
async function benchStart({ all, start }: DavitMembers, add: AddFigure): Promise<void> {
  const [first] = all;
  const form = `value=${"x".repeat(started.valueBytes)}`;
  const keys = Array.from({ length: started.bytes / started.valueBytes }, (_, at) => `/v2/keys/many/${at % 997}/${at}`);
  await sendAll(
    first?.storeUrl ?? "",
    keys.map((key) => requestText("PUT", key, form)),
  );
  await first?.stop();
  const times: number[] = [];
  for (let round = 0; round < 3; round++) {
    const startMs = performance.now();
    const davit = await start(0);
    times.push((performance.now() - startMs) / 1_000);
    await davit.stop();
  }
  const what = `start of a davit with ${started.bytes / 2 ** 20} MiB in etcd`;
  add({ what, unit: "s", davit: times, goal: { of: "davit", atMost: 4 } });
}

/** The member of etcd whose v2 API answers writes without asking another one. */
async function leaderOf({ all }: EtcdMembers): Promise<Pick<DavitProcess, "storeUrl" | "pid">> {
  for (const { url, pid } of all) {
    const stats: unknown = await (await fetch(new URL("/v2/stats/self", url))).json();
    const state = typeof stats === "object" && stats !== null && "state" in stats ? stats.state : undefined;
    if (state === "StateLeader") return { storeUrl: url.origin, pid };
  }
  throw new Error("etcd has no leader");
}

function peerOf(name: LoadedPeer["name"], running: Pick<DavitProcess, "storeUrl" | "pid"> | undefined): LoadedPeer {
  if (running === undefined) throw new Error(`no ${name}`);
  return { name, url: running.storeUrl, pid: running.pid };
}

async function pause(durationMs: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, durationMs));
}
