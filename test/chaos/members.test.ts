/**
 * The first law under chaos, by three davits that share a store on three etcds: less than a minute in every run of the
 * suites. `make test-chaos` runs it longer, too (`chaos.test.ts`).
 */

import { describe, expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { ChaosRun } from "./chaos-run.ts";
import { faultLineOf, operationsOf, paceMs, seed, timeoutMsOf } from "./faults.ts";
import { startThreeDavits } from "./three-davits.ts";

const operations = operationsOf(15);

describe.skipIf(missing("kube-apiserver", "etcd"))(
  "no machine of three davits is installed against its objects",
  () => {
    it(`through ${operations} random changes in a cluster (seed ${seed})`, {
      timeout: timeoutMsOf(operations),
    }, async () => {
      const how = { seed, operations, paceMs, disturbEvery: 4, startDavits: startThreeDavits };
      const line = await faultLineOf(await ChaosRun.start(how));
      expect(line, line).toBe("");
    });
  },
);
