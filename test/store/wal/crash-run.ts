/** One life of a store on a disk that will fail, and what the next one must find. */

import { expect } from "vitest";
import { nextTurn } from "../../../src/lib/slices.ts";
import { WalError } from "../../../src/store/core/log-port.ts";
import { storePath } from "../../../src/store/core/node.ts";
import { StoreError } from "../../../src/store/core/refusal.ts";
import { Store } from "../../../src/store/store.ts";
import { segmentHeadBytes } from "../../../src/store/wal/record.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import type { FaultFiles } from "../../helpers/fault-files.ts";
import { openLog, openStore } from "../../helpers/test-store.ts";

// Small, so that a run begins several segments, takes several snapshots, and forgets what is before them.
export const segments = { maxSegmentBytes: segmentHeadBytes + 400 };
export const options = { ...segments, snapshotInterval: { records: 7, bytes: 10_000 } };
const waves = 6;
const writesPerWave = 4;
/** How many keys a run writes. */
export const writeCount = waves * writesPerWave;

export interface Run {
  readonly files: FaultFiles;
  /** Keys in the order in which they were submitted, with what came of it. */
  readonly writes: readonly { readonly key: string; readonly isAnswered: boolean }[];
}

/** Waves of concurrent writes, each of a key of its own, on a disk that will fail; then a clean stop, if it can be. */
export async function run(files: FaultFiles, storeOptions: Parameters<typeof openStore>[1] = options): Promise<Run> {
  const writes: { key: string; isAnswered: boolean }[] = [];
  try {
    const clock = new FakeClock();
    const log = await openLog(files, { ...segments, clock });
    const store = await Store.open({ log, clock, ...storeOptions });
    for (let wave = 0; wave < waves; wave++) {
      const keys = Array.from({ length: writesPerWave }, (_, number) => `/w${wave}/k${number}`);
      const results = await Promise.allSettled(
        keys.map((key) => store.submit({ kind: "create", path: storePath(key), value: key.repeat(5) })),
      );
      for (const [number, { status }] of results.entries()) {
        writes.push({ key: keys[number] ?? "", isAnswered: status === "fulfilled" });
      }
      // A snapshot that is due is written before the next wave.
      for (let turn = 0; turn < 3; turn++) await nextTurn();
      // A log that could not be written looks whether it can be.
      if (log.status !== "writable") await clock.advance(1_000);
    }
    await store.stop();
  } catch (error) {
    if (!isPlanned(error)) throw error;
  }
  return { files, writes };
}

/** Which keys a store holds, in the order of their indexes, which must be consecutive. */
export async function reopenedKeys(files: FaultFiles): Promise<readonly string[]> {
  const store = await openStore(files, options);
  const found = [...store.dump()].filter(({ value }) => value !== undefined);
  const sorted = found.toSorted((a, b) => a.modifiedIndex - b.modifiedIndex);
  expect(sorted.map(({ modifiedIndex }) => modifiedIndex)).toEqual(sorted.map((_, number) => number + 1));
  expect(store.indexes.storeIndex).toBe(sorted.length);
  for (const { path, value } of sorted) expect(value).toBe(path.repeat(5));
  // It is a store like any other.
  await store.submit({ kind: "set", path: storePath("/after"), value: "x" });
  await store.stop();
  return sorted.map(({ path }) => path);
}

/** Every answered write is there; the others are a prefix, in order, of those behind the last answered one. */
export function expectPromise({ writes }: Run, keys: readonly string[]): void {
  const lastAnswered = writes.findLastIndex(({ isAnswered }) => isAnswered);
  const answered = writes.filter(({ isAnswered }) => isAnswered).map(({ key }) => key);
  const inFlight = writes.slice(lastAnswered + 1).map(({ key }) => key);
  expect(keys.slice(0, answered.length)).toEqual(answered);
  expect(inFlight.slice(0, keys.length - answered.length)).toEqual(keys.slice(answered.length));
}

/** True for what a store may throw on a disk that fails by plan. */
export function isPlanned(error: unknown): boolean {
  if (error instanceof WalError || error instanceof StoreError) return true;
  return error instanceof Error && error.message.includes("planned fault");
}
