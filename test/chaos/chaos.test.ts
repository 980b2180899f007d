/**
 * The first law under chaos, of objects in a cluster and of files in a directory: a minute in every run of the suites,
 * always with the same choices; hours of others by `make test-chaos`. `DAVIT_TEST_CHANGES` and `DAVIT_TEST_SEED` set
 * how many changes, and from which seed.
 */

import { describe, expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { ChaosRun } from "./chaos-run.ts";
import { DirectoryRun } from "./directory-run.ts";
import { faultLineOf, operationsOf, paceMs, seed, timeoutMsOf } from "./faults.ts";
import { startOneDavit } from "./one-davit.ts";

const operations = operationsOf(40);
// A file takes seconds to be written.
const fileOperations = Math.ceil(operations / 5);
const timeout = timeoutMsOf(operations);

describe.concurrent("no machine is installed that its objects do not install", () => {
  it.skipIf(missing("kube-apiserver"))(
    `through ${operations} random changes in a cluster (seed ${seed})`,
    { timeout },
    async () => {
      const how = { seed, operations, paceMs, disturbEvery: 10, startDavits: startOneDavit };
      const line = await faultLineOf(await ChaosRun.start(how));
      expect(line, line).toBe("");
    },
  );

  it.skipIf(missing("vim", "rsync"))(
    `through ${fileOperations} random changes of files (seed ${seed})`,
    { timeout },
    async () => {
      const run = await DirectoryRun.start({ seed, operations: fileOperations, paceMs, disturbEvery: 10 });
      const line = await faultLineOf(run);
      expect(line, line).toBe("");
    },
  );
});
