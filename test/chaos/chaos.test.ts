/**
 * The first law under chaos, of objects in a cluster and of files in a directory: two minutes in every run of the suites,
 * always with the same choices; half an hour of others by `make test-chaos`. `DAVIT_TEST_CHANGES` and `DAVIT_TEST_SEED`
 * set how many changes, and from which seed.
 */

import { randomInt } from "node:crypto";
import { describe, expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { ChaosRun } from "./chaos-run.ts";
import { DirectoryRun } from "./directory-run.ts";
import type { Witness } from "./witness.ts";

const { DAVIT_TEST_CHANGES: changes, DAVIT_TEST_SEED: chosenSeed } = process.env;
const operations = Number(changes ?? 100);
const seed = Number(chosenSeed ?? (changes === undefined ? 733_923 : randomInt(1_000_000)));
const paceMs = 500;
// A file takes seconds to be written.
const fileOperations = Math.ceil(operations / 5);
// A change takes some hundred milliseconds, a disturbance seconds, on a machine that may be busy.
const timeoutMs = 300_000 + operations * 5_000;

interface Run {
  readonly witness: Witness;
  readonly summary: string;
  run(): Promise<void>;
  unsettled(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

async function survives(run: Run): Promise<void> {
  try {
    await run.run();
    const unsettled = await run.unsettled();
    process.stdout.write(`${run.summary}\n`);
    expect(run.witness.breaches).toEqual([]);
    expect(unsettled).toEqual([]);
  } finally {
    await run.stop();
  }
}

describe.concurrent("no machine is installed that its objects do not install", () => {
  it.skipIf(missing("kube-apiserver"))(
    `through ${operations} random changes in a cluster (seed ${seed})`,
    { timeout: timeoutMs },
    async () => {
      await survives(await ChaosRun.start({ seed, operations, paceMs }));
    },
  );

  it(`through ${fileOperations} random changes of files (seed ${seed})`, { timeout: timeoutMs }, async () => {
    await survives(await DirectoryRun.start({ seed, operations: fileOperations, paceMs }));
  });
});
