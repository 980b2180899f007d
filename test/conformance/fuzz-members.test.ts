/**
 * Three members of one store and etcd 3.4 side by side: each request goes to any of the members, and not one answer
 * differs. `FUZZ_SEED` and `FUZZ_OPERATIONS` repeat or prolong a run; `make fuzz-members` is a long one.
 */

import { randomInt } from "node:crypto";
import { describe, expect, it } from "vitest";
import { startDavitMembers } from "../helpers/davit-members.ts";
import type { TestServer } from "../helpers/keys-servers.ts";
import { quickFolder, startEtcdIn } from "../helpers/quick-folder.ts";
import { missing } from "../helpers/requirements.ts";
import { Random } from "./fuzz-random.ts";
import { fuzz } from "./fuzz-run.ts";

const seed = Number(process.env.FUZZ_SEED ?? randomInt(1_000_000_000));
const operations = Number(process.env.FUZZ_OPERATIONS ?? 1_000);
const lanes = 2;
// A member knows the leader's clock late, by the time of a heartbeat on its way: on a busy machine that is much.
const clockMs = 2_000;

/** Servers of which any may be asked next, once it has everything that was acknowledged. */
async function startAnyOfThree(parent: string): Promise<TestServer> {
  const { all, stop } = await startDavitMembers({ parent });
  const random = new Random(seed);
  const nextPort = async () => {
    const member = all[random.below(all.length)];
    await member?.store.membership.barrier();
    return member?.port ?? 0;
  };
  return { port: all[0]?.port ?? 0, nextPort, clockMs, stop };
}

describe("a random sequence of operations", () => {
  it.skipIf(missing("etcd"))(
    "is answered by three members as by etcd",
    async () => {
      say(`fuzz: FUZZ_SEED=${seed} FUZZ_OPERATIONS=${operations}`);
      const folder = quickFolder(2 * lanes);
      const start = { etcd: () => startEtcdIn(folder), davit: () => startAnyOfThree(folder) };
      const { summary, difference } = await fuzz({ seed, operations, lanes, start, shrinkLimitMs: 120_000 });
      for (const line of summary.lines()) say(`fuzz: ${line}`);
      say(`fuzz: seed ${seed}: ${summary.operations} operations, ${difference === undefined ? 0 : 1} differences`);
      expect(difference).toBeUndefined();
    },
    300_000 + operations * 50,
  );
});

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
