/**
 * The first law under chaos, of objects in a cluster: a minute in every run of the suites,
 * always with the same choices; hours of others by `make test-chaos`. `DAVIT_TEST_CHANGES` and `DAVIT_TEST_SEED` set
 * how many changes, and from which seed.
 */

import { describe, expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { ChaosRun } from "./chaos-run.ts";
import { faultsOf, operationsOf, paceMs, seed, timeoutMsOf } from "./faults.ts";
import { startOneDavit } from "./one-davit.ts";

const operations = operationsOf(100);
const timeout = timeoutMsOf(operations);

describe.concurrent("no machine is installed that its objects do not install", () => {
  it.skipIf(missing("kube-apiserver"))(
    `through ${operations} random changes in a cluster (seed ${seed})`,
    { timeout },
    async () => {
      const how = { seed, operations, paceMs, disturbEvery: 10, startDavits: startOneDavit };
      expect(await faultsOf(await ChaosRun.start(how))).toEqual([]);
    },
  );
});
