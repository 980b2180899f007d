/**
 * Requests per second of the key API beside etcd's: wrk with 64 connections and 1,000 keys of 100 bytes, in interleaved
 * rounds. Processor time is that of the server alone.
 */

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { MeasuredFigure } from "../tools/benchmarks/figures.ts";
import { cpuMicrosecondsOf } from "./process-usage.ts";
import { requestText, sendAll } from "./raw-client.ts";
import type { AddFigure } from "./run.ts";
import type { LoadedPeer } from "./store-peers.ts";
import { takeTurns } from "./turns.ts";

export interface SpeedOptions {
  readonly rounds: number;
  readonly roundSeconds: number;
  /** Names of modes; all modes if empty. */
  readonly modes: readonly string[];
}

interface Requests {
  readonly perSecond: number;
  readonly cpuMicroseconds: number;
  readonly p99Ms: number;
}

interface Mode {
  readonly name: string;
  readonly what: string;
  /** The least ratio of throughput. */
  readonly goal?: number;
  /** The most ratio of processor time. */
  readonly cpuGoal?: number;
  readonly connections: number;
}

const modes: readonly Mode[] = [
  { name: "get", what: "GET of a key", goal: 1, cpuGoal: 0.85, connections: 64 },
  { name: "put", what: "PUT of a key", goal: 1.25, connections: 64 },
  { name: "cas", what: "PUT with `prevValue`", goal: 1.25, connections: 64 },
  { name: "post", what: "POST, keys in order", goal: 1.25, connections: 64 },
  { name: "list", what: "recursive GET of 10,000 keys", goal: 1, connections: 4 },
  { name: "list-changing", what: "the same, 10 for each PUT of one of them", connections: 4 },
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

export async function measureSpeed(
  peers: readonly [LoadedPeer, LoadedPeer],
  { rounds, roundSeconds, modes: names }: SpeedOptions,
  add: AddFigure,
): Promise<void> {
  for (const mode of modes.filter(({ name }) => names.length === 0 || names.includes(name))) {
    for (const peer of peers) await measure(peer, mode, 1);
    const found = await takeTurns(peers, rounds, (peer) => measure(peer, mode, roundSeconds));
    for (const figure of figuresOf(mode, peers.map(found))) add(figure);
  }
}

/** Returns throughput with processor time, and the 99th percentile of the latency. */
function figuresOf(
  { name, what, goal, cpuGoal }: Mode,
  [own = [], other = []]: readonly (readonly Requests[])[],
): readonly MeasuredFigure[] {
  const sides = (of: (requests: Requests) => number) => ({ davit: own.map(of), beside: other.map(of) });
  const throughput = {
    unit: "/s",
    ...sides(({ perSecond }) => perSecond),
    ...(goal !== undefined && { goal: { of: "ratio", atLeast: goal } as const }),
  };
  const cpu = {
    unit: "us",
    ...sides(({ cpuMicroseconds }) => cpuMicroseconds),
    ...(cpuGoal !== undefined && { goal: { of: "ratio", atMost: cpuGoal } as const }),
  };
  const isHeadline = ["get", "put"].includes(name);
  return [
    { what, peer: "etcd", ...throughput, cpu, ...(isHeadline && { headline: what }) },
    { what: `${what}: 99 % within`, peer: "etcd", unit: "ms", ...sides(({ p99Ms }) => p99Ms) },
  ];
}

async function measure({ url, pid }: LoadedPeer, { name, connections }: Mode, seconds: number): Promise<Requests> {
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
