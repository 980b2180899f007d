/**
 * Requests per second of the key API beside etcd's: wrk with 64 connections and 1,000 keys of 100 bytes, in interleaved
 * rounds. Processor time is that of the server alone.
 */

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { cpuMicrosecondsOf } from "./process-usage.ts";
import { requestText, sendAll } from "./raw-client.ts";
import { median, pairedRatio } from "./statistics.ts";
import type { LoadedPeer } from "./store-peers.ts";

export interface SpeedOptions {
  readonly rounds: number;
  readonly roundSeconds: number;
}

interface Measure {
  readonly perSecond: number;
  readonly cpuMicroseconds: number;
  readonly p99Ms: number;
}

/** One row of the table: medians of each, and of the ratios of paired rounds. */
export interface SpeedRow {
  readonly what: string;
  readonly target: string;
  readonly davit: Measure;
  readonly etcd: Measure;
  readonly throughputRatio: number;
  readonly cpuRatio: number;
  readonly p99Ratio: number;
}

interface Mode {
  readonly name: string;
  readonly what: string;
  readonly target: string;
  readonly connections: number;
}

const modes: readonly Mode[] = [
  { name: "get", what: "GET of a key", target: ">= 1.0, CPU <= 0.85", connections: 64 },
  { name: "put", what: "PUT of a key", target: ">= 1.25", connections: 64 },
  { name: "cas", what: "PUT with prevValue", target: ">= 1.0", connections: 64 },
  { name: "post", what: "POST, keys in order", target: ">= 1.0", connections: 64 },
  { name: "list", what: "recursive GET of 10,000 keys", target: ">= 1.0", connections: 4 },
  { name: "list-changing", what: "the same, 10 for each PUT of one of them", target: "shown only", connections: 4 },
];

const keyCount = 1_000;
const listedCount = 10_000;
const valueBytes = 100;
const script = join(import.meta.dirname, "keys.lua");
const run = promisify(execFile);

/** Writes the keys that the rounds ask for. */
export async function loadSpeedKeys({ url }: LoadedPeer): Promise<void> {
  const keys = [
    ...Array.from({ length: keyCount }, (_, at) => `bench/${at + 1}`),
    ...Array.from({ length: listedCount }, (_, at) => `list/${at % 100}/${at}`),
  ];
  const form = `value=${"x".repeat(valueBytes)}`;
  await sendAll(
    url,
    keys.map((key) => requestText("PUT", `/v2/keys/${key}`, form)),
  );
}

/** Measures every mode, or those that are named. */
export async function measureSpeed(
  [davit, etcd]: readonly [LoadedPeer, LoadedPeer],
  options: SpeedOptions,
  names: readonly string[],
): Promise<readonly SpeedRow[]> {
  const rows: SpeedRow[] = [];
  for (const mode of modes.filter(({ name }) => names.length === 0 || names.includes(name))) {
    const found: Record<LoadedPeer["name"], Measure[]> = { davit: [], etcd: [] };
    for (const peer of [davit, etcd]) await measure(peer, mode, 1);
    for (let round = 0; round < options.rounds; round++) {
      // Another one begins each round: what runs first finds a cooler machine.
      const turns = round % 2 === 0 ? [davit, etcd] : [etcd, davit];
      for (const peer of turns) found[peer.name].push(await measure(peer, mode, options.roundSeconds));
    }
    rows.push(row(mode, found));
  }
  return rows;
}

async function measure({ url, pid }: LoadedPeer, { name, connections }: Mode, seconds: number): Promise<Measure> {
  const before = cpuMicrosecondsOf(pid);
  const args = ["-t1", `-c${connections}`, `-d${seconds}s`, "-s", script, url, "--", name];
  const { stdout } = await run("wrk", args);
  const cpu = cpuMicrosecondsOf(pid) - before;
  const [last = ""] = stdout.trim().split("\n").slice(-1);
  const { requests, microseconds, failed, p99Microseconds } = JSON.parse(last);
  if (failed > 0) throw new Error(`${failed} of ${requests} requests failed (${name})`);
  return {
    perSecond: requests / (microseconds / 1e6),
    cpuMicroseconds: cpu / requests,
    p99Ms: p99Microseconds / 1_000,
  };
}

function row({ what, target }: Mode, { davit, etcd }: Record<LoadedPeer["name"], readonly Measure[]>): SpeedRow {
  const paired = (of: (measure: Measure) => number) => pairedRatio(davit.map(of), etcd.map(of));
  return {
    what,
    target,
    davit: medians(davit),
    etcd: medians(etcd),
    throughputRatio: paired(({ perSecond }) => perSecond),
    cpuRatio: paired(({ cpuMicroseconds }) => cpuMicroseconds),
    p99Ratio: paired(({ p99Ms }) => p99Ms),
  };
}

function medians(measures: readonly Measure[]): Measure {
  return {
    perSecond: median(measures.map(({ perSecond }) => perSecond)),
    cpuMicroseconds: median(measures.map(({ cpuMicroseconds }) => cpuMicroseconds)),
    p99Ms: median(measures.map(({ p99Ms }) => p99Ms)),
  };
}
