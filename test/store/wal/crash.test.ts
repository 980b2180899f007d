/**
 * The promise of the log, tried against every single call on the disk: for n = 1, 2, … the n-th call fails, or the
 * power goes at it, until a run gets through without a fault. Each time the store is opened again and must hold every
 * write that was answered and, of the others, at most a prefix in the order of the log.
 */

import { describe, expect, it } from "vitest";
import { nextTurn } from "../../../src/lib/slices.ts";
import { WalError } from "../../../src/store/log-port.ts";
import { storePath } from "../../../src/store/node.ts";
import { StoreError } from "../../../src/store/refusal.ts";
import { Store } from "../../../src/store/store.ts";
import { segmentHeadBytes } from "../../../src/store/wal/record.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { FaultFiles, type FaultPlan, seededPick } from "../../helpers/fault-files.ts";
import { openLog, openStore } from "../../helpers/test-store.ts";

// Small, so that a run begins several segments, takes several snapshots, and forgets what is before them.
const segments = { maxSegmentBytes: segmentHeadBytes + 400 };
const options = { ...segments, snapshotInterval: { records: 7, bytes: 10_000 } };
const waves = 6;
const writesPerWave = 4;

interface Run {
  readonly files: FaultFiles;
  /** Keys in the order in which they were submitted, with what came of it. */
  readonly writes: readonly { readonly key: string; readonly isAnswered: boolean }[];
}

/** Waves of concurrent writes, each of a key of its own, on a disk that will fail; then a clean stop, if it can be. */
async function run(files: FaultFiles, storeOptions: Parameters<typeof openStore>[1] = options): Promise<Run> {
  const writes: { key: string; isAnswered: boolean }[] = [];
  const log = await openLog(files, segments);
  try {
    const store = await Store.open({ log, clock: new FakeClock(), ...storeOptions });
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
    }
    await store.stop();
  } catch (error) {
    if (!isPlanned(error)) throw error;
  }
  return { files, writes };
}

/** Which keys a store holds, in the order of their indexes, which must be consecutive. */
async function reopenedKeys(files: FaultFiles): Promise<readonly string[]> {
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
function expectPromise({ writes }: Run, keys: readonly string[]): void {
  const lastAnswered = writes.findLastIndex(({ isAnswered }) => isAnswered);
  const answered = writes.filter(({ isAnswered }) => isAnswered).map(({ key }) => key);
  const inFlight = writes.slice(lastAnswered + 1).map(({ key }) => key);
  expect(keys.slice(0, answered.length)).toEqual(answered);
  expect(inFlight.slice(0, keys.length - answered.length)).toEqual(keys.slice(answered.length));
}

/** Runs with a fault at call 1, 2, … until none strikes. @returns how many runs had a fault. */
async function forEveryCall(
  planOf: (call: number) => FaultPlan,
  afterwards: (files: FaultFiles) => FaultFiles,
  seed = 0,
): Promise<number> {
  for (let call = 1; ; call++) {
    const done = await run(new FaultFiles(seededPick(1_000 * seed + call), planOf(call)));
    const keys = await reopenedKeys(afterwards(done.files));
    expectPromise(done, keys);
    if (done.files.faults === 0) {
      expect(keys).toHaveLength(waves * writesPerWave);
      return call - 1;
    }
  }
}

describe("when the power goes at a call", () => {
  it.each([1, 2, 3, 4, 5])("what was answered is there (what the disk keeps: seed %i)", async (seed) => {
    const runs = await forEveryCall(
      (crashAt) => ({ crashAt }),
      (files) => files.afterCrash(),
      seed,
    );
    expect(runs).toBeGreaterThan(30);
  });

  it("and again at a call of the start after it, nothing more is lost", async () => {
    const done = await run(new FaultFiles(seededPick(1), { crashAt: 30 }));
    for (let crashAt = 1; crashAt < 30; crashAt++) {
      const second = done.files.afterCrash({ crashAt });
      await openStore(second, options).catch((error: unknown) => expect(isPlanned(error)).toBe(true));
      expectPromise(done, await reopenedKeys(second.afterCrash()));
    }
  });
});

describe("when a call fails", () => {
  it.each(["EIO", "ENOSPC"])("with %s, what was answered is there, and after a crash, too", async (code) => {
    const reopened = await forEveryCall(
      (failAt) => ({ failAt, code }),
      (files) => files.reopened(),
    );
    const crashed = await forEveryCall(
      (failAt) => ({ failAt, code }),
      (files) => files.afterCrash(),
    );
    expect(reopened).toBeGreaterThan(30);
    expect(crashed).toBe(reopened);
  });

  it("of writing alone, later writes are answered again", async () => {
    for (let failAt = 3; failAt < 10; failAt++) {
      const { files, writes } = await run(
        new FaultFiles(seededPick(failAt), { failOnly: "append", failAt, code: "ENOSPC" }),
        segments,
      );
      expect(files.faults).toBe(1);
      expect(writes.at(-1)?.isAnswered).toBe(true);
      expect(writes.some(({ isAnswered }) => !isAnswered)).toBe(true);
      expect(await reopenedKeys(files.reopened())).toEqual(writes.filter((w) => w.isAnswered).map(({ key }) => key));
    }
  });
});

function isPlanned(error: unknown): boolean {
  if (error instanceof WalError || error instanceof StoreError) return true;
  return error instanceof Error && error.message.includes("planned fault");
}
