/**
 * The first law under chaos: `make test-chaos`. `DAVIT_TEST_CHANGES` and `DAVIT_TEST_SEED` set how many changes, and from
 * which seed.
 */

import { randomInt } from "node:crypto";
import { expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { ChaosRun } from "./chaos-run.ts";

const operations = Number(process.env.DAVIT_TEST_CHANGES ?? 2_000);
const seed = Number(process.env.DAVIT_TEST_SEED ?? randomInt(1_000_000));
const paceMs = 500;
// A change takes some hundred milliseconds, a disturbance seconds, on a machine that may be busy.
const timeoutMs = 300_000 + operations * 5_000;

it.skipIf(missing("kube-apiserver", "chaos"))(
  `${operations} random changes install no machine that its objects do not (seed ${seed})`,
  { timeout: timeoutMs },
  async () => {
    const run = await ChaosRun.start({ seed, operations, paceMs });
    try {
      await run.run();
      const unsettled = await run.unsettled();
      process.stdout.write(`${run.summary}\n`);
      expect(run.witness.breaches).toEqual([]);
      expect(unsettled).toEqual([]);
      // Else nothing was tried.
      for (const davit of ["serve", "follower"]) expect(run.witness.counts.get(`${davit} install`)).toBeGreaterThan(0);
    } finally {
      await run.stop();
    }
  },
);
