/**
 * How long turns of the event loop take while a snapshot of 100,000 keys is written and 100,000 further keys expire at
 * the same moment, beside some time with nothing to do. Each round reports its longest turn.
 */

import { randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import { systemClock } from "../src/lib/clock.ts";
import { diskFiles } from "../src/lib/files/files.ts";
import { nextTurn } from "../src/lib/slices.ts";
import type { SingleCommand } from "../src/store/command/command.ts";
import { storePath } from "../src/store/core/node.ts";
import { openStore } from "../src/store/open-store.ts";
import type { Store } from "../src/store/store.ts";
import { lockDirectory } from "../src/store/wal/lock.ts";
import { silentLog } from "../test/helpers/test-store.ts";
import { temporaryDirectory, withStops } from "./boot-contenders.ts";
import type { AddFigure } from "./run.ts";

const keyCount = 100_000;
const keysPerBatch = 1_000;
// Long enough for them to be written.
const ttlSeconds = 5;
// The snapshot begins so long before the keys end.
const leadMs = 20;
const idleMs = 2_000;

export async function measureTurns(rounds: number, add: AddFigure): Promise<void> {
  const found: Round[] = [];
  for (let round = 0; round < rounds; round++) {
    found.push(await withStops(async (stops) => measureRound(await temporaryDirectory(stops))));
  }
  const figure = (what: string, of: (turns: Turns) => readonly number[]) => {
    const [davit, beside] = [found.map(({ busy }) => longest(of(busy))), found.map(({ idle }) => longest(of(idle)))];
    add({ what, peer: "nothing to do", unit: "ms", davit, beside, goal: { of: "davit", atMost: 50 } });
  };
  figure("longest turn, processor time of the thread", ({ cpuMs }) => cpuMs);
  figure("longest turn", ({ wallMs }) => wallMs);
}

interface Round {
  readonly idle: Turns;
  readonly busy: Turns;
}

async function measureRound(directory: string): Promise<Round> {
  const idle = await turnsOf(() => systemClock.sleep(idleMs));
  const store = await open(directory);
  const endsAtMs = await fill(store);
  const spareMs = endsAtMs - systemClock.nowMs() - leadMs;
  if (spareMs < 0) throw new Error("The keys ended before all were written: a longer ttl is needed");
  await systemClock.sleep(spareMs);
  const busy = await turnsOf(async () => {
    // The record that makes a snapshot due.
    await store.submit(set("/last"));
    while ((store.counts.get("expireCount") ?? 0) < keyCount || !(await hasSnapshot(directory))) {
      await systemClock.sleep(1);
    }
  });
  await store.stop();
  return { idle, busy };
}

/** A store that takes its first snapshot right behind what `fill` writes. */
function open(directory: string): Promise<Store> {
  return openStore({
    directory,
    files: diskFiles,
    lock: lockDirectory,
    clock: systemClock,
    random: randomBytes,
    log: silentLog,
    onDamage: "refuse",
    snapshotInterval: { records: keyCount / keysPerBatch + 2, bytes: 2 ** 40 },
  });
}

/** @returns when the keys with a ttl end. */
async function fill(store: Store): Promise<number> {
  for (let first = 0; first < keyCount; first += keysPerBatch) {
    const commands = Array.from({ length: keysPerBatch }, (_, number) => set(`/staying/${first + number}`));
    await store.submit({ kind: "batch", commands });
  }
  const ending = Array.from({ length: keyCount }, (_, number) => set(`/ending/${number}`, ttlSeconds));
  const { event } = await store.submit({ kind: "batch", commands: ending });
  return event.node.expiresAtMs ?? 0;
}

function set(path: string, seconds?: number): SingleCommand {
  const value = path.repeat(8);
  return { kind: "set", path: storePath(path), value, ...(seconds !== undefined && { ttlSeconds: seconds }) };
}

async function hasSnapshot(directory: string): Promise<boolean> {
  return (await readdir(directory)).some((name) => name.endsWith(".snapshot"));
}

/** Turns of the event loop while something goes on, each as long as it kept everyone else waiting. */
interface Turns {
  readonly wallMs: readonly number[];
  /** Processor time of this thread alone, which other processes do not disturb. */
  readonly cpuMs: readonly number[];
}

async function turnsOf(work: () => Promise<void>): Promise<Turns> {
  const turns: { wallMs: number[]; cpuMs: number[] } = { wallMs: [], cpuMs: [] };
  let isOver = false;
  const done = work().finally(() => {
    isOver = true;
  });
  let before = now();
  while (!isOver) {
    await nextTurn();
    const after = now();
    turns.wallMs.push(after.wallMs - before.wallMs);
    turns.cpuMs.push(after.cpuMs - before.cpuMs);
    before = after;
  }
  await done;
  return turns;
}

function now() {
  const { user, system } = process.threadCpuUsage();
  return { wallMs: systemClock.monotonicMs(), cpuMs: (user + system) / 1_000 };
}

function longest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}
