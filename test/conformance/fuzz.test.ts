/**
 * davit and etcd 3.4 side by side: random operations, and not one answer that differs. `FUZZ_SEED` and
 * `FUZZ_OPERATIONS` repeat or prolong a run; `make fuzz-store` is a long one.
 */

import { randomInt } from "node:crypto";
import { describe, expect, it } from "vitest";
import { startDavitStore } from "../helpers/davit-store.ts";
import { quickFolder, startEtcdIn } from "../helpers/quick-folder.ts";
import { missing } from "../helpers/requirements.ts";
import { fuzz } from "./fuzz-run.ts";

const seed = Number(process.env.FUZZ_SEED ?? randomInt(1_000_000_000));
// Some of them wait, or close a watch; the others are sent.
const operations = Number(process.env.FUZZ_OPERATIONS ?? 5_000);
const lanes = 4;

describe("a random sequence of operations", () => {
  it.skipIf(missing("etcd"))(
    "is answered by davit as by etcd",
    async () => {
      say(`fuzz: FUZZ_SEED=${seed} FUZZ_OPERATIONS=${operations}`);
      const folder = quickFolder(lanes);
      const start = { etcd: () => startEtcdIn(folder), davit: () => startDavitStore(folder) };
      const { summary, difference } = await fuzz({ seed, operations, lanes, start, shrinkLimitMs: 120_000 });
      for (const line of summary.lines()) say(`fuzz: ${line}`);
      say(`fuzz: seed ${seed}: ${summary.operations} operations, ${difference === undefined ? 0 : 1} differences`);
      expect(difference).toBeUndefined();
      expect(summary.late).toBeLessThanOrEqual(summary.sequences / 4);
    },
    300_000 + operations * 10,
  );
});

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
