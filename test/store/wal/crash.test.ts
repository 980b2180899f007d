/**
 * The promise of the log, tried against every single call on the disk: for n = 1, 2, … the n-th call fails, or the
 * power goes at it, until a run gets through without a fault. Each time the store is opened again and must hold every
 * write that was answered and, of the others, at most a prefix in the order of the log.
 */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FaultFiles, type FaultPlan, seededPick } from "../../helpers/fault-files.ts";
import { openStore } from "../../helpers/test-store.ts";
import { expectPromise, isPlanned, options, reopenedKeys, run, segments, writeCount } from "./crash-run.ts";

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
      expect(keys).toHaveLength(writeCount);
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

  it.each([1, 2, 3, 4, 5])("what was answered is there, though the rest is garbled (seed %i)", async (seed) => {
    const runs = await forEveryCall(
      (crashAt) => ({ crashAt, garbles: true }),
      (files) => files.afterCrash(),
      seed,
    );
    expect(runs).toBeGreaterThan(30);
  });

  it("and again at a call of the start after it, nothing more is lost", async () => {
    const done = await run(new FaultFiles(seededPick(1), { crashAt: 30 }));
    for (let crashAt = 1; crashAt < 30; crashAt++) {
      const second = done.files.afterCrash({ crashAt, garbles: true });
      await openStore(second, options).catch((error: unknown) => expect(isPlanned(error)).toBe(true));
      expectPromise(done, await reopenedKeys(second.afterCrash()));
    }
  });
});

describe("when a call fails", () => {
  it.each(["EIO", "ENOSPC", "EMFILE"])("with %s, what was answered is there, and after a crash, too", async (code) => {
    const reopened = await forEveryCall(
      (failAt) => ({ failAt, code }),
      (files) => files.reopened(),
    );
    const crashed = await forEveryCall(
      (failAt) => ({ failAt, code, garbles: true }),
      (files) => files.afterCrash(),
    );
    expect(reopened).toBeGreaterThan(30);
    expect(crashed).toBe(reopened);
  });

  it("of writing alone, later writes are answered again", async () => {
    let refused = 0;
    for (let failAt = 3; failAt < 12; failAt++) {
      const { files, writes } = await run(
        new FaultFiles(seededPick(failAt), { failOnly: "append", failAt, code: "ENOSPC" }),
        segments,
      );
      expect(files.faults).toBe(1);
      expect(writes.at(-1)?.isAnswered).toBe(true);
      refused += writes.filter(({ isAnswered }) => !isAnswered).length;
      expect(await reopenedKeys(files.reopened())).toEqual(writes.filter((w) => w.isAnswered).map(({ key }) => key));
    }
    // Not every write to the disk is of the log.
    expect(refused).toBeGreaterThan(5);
  });
});

it("when calls fail for a while, and the power goes later, what was answered is there", async () => {
  const anyPlan = fc.record(
    {
      failAt: fc.integer({ min: 1, max: 150 }),
      failFor: fc.integer({ min: 1, max: 12 }),
      code: fc.constantFrom("EIO", "ENOSPC", "EMFILE"),
      failOnly: fc.constantFrom("append", "sync", "truncate", "open", "close", "rename", "remove", "syncDirectory"),
      crashAt: fc.integer({ min: 1, max: 250 }),
      garbles: fc.boolean(),
    },
    { requiredKeys: ["failAt", "code", "garbles"] },
  );
  await fc.assert(
    fc.asyncProperty(anyPlan, fc.integer({ min: 1, max: 1_000 }), async (plan, seed) => {
      const done = await run(new FaultFiles(seededPick(seed), plan));
      expectPromise(done, await reopenedKeys(done.files.afterCrash()));
    }),
    { numRuns: 300 },
  );
});
