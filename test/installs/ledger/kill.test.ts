/**
 * A real process on a real disk is killed again and again while machines claim. `DAVIT_TEST_KILLS` and
 * `DAVIT_TEST_SEED` set how often, and from which seed.
 */

import { randomInt } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../../src/lib/clock.ts";
import { seededPick } from "../../helpers/fault-files.ts";
import { LedgerProcess, openGrant, ServedInstalls } from "./ledger-processes.ts";

const kills = Number(process.env.DAVIT_TEST_KILLS ?? 6);
const seed = Number(process.env.DAVIT_TEST_SEED ?? randomInt(1_000_000));
const machines = 12;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "davit-ledger-"));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

it(
  `a machine gets at most one install by a permit, whatever moment davit is killed at (${kills} kills, seed ${seed})`,
  async () => {
    const pick = seededPick(seed);
    const served = new ServedInstalls();
    let generation = 0;
    const ids = new Set<string>();
    let amid = 0;
    for (let kill = 0; kill < kills; kill++) {
      // A permit stays open over two lives of davit.
      if (kill % 2 === 0) generation += 1;
      const ledger = new LedgerProcess(["directory", directory]);
      await ledger.ready;
      ids.add(ledger.id);
      const grant = openGrant(ledger.id, generation, systemClock.nowMs());
      const answeredBefore = served.answered;
      // Of each machine, two requests at once: its firmware retries.
      for (let machine = 0; machine < machines; machine++) {
        for (let request = 0; request < 2; request++) served.ask(ledger, machine, grant);
      }
      const answers = () => served.answered - answeredBefore;
      // Claims are logged within these milliseconds. A busy machine may need longer, so the last life answers all.
      if (kill < kills - 1) await systemClock.sleep(pick(20));
      else await expect.poll(answers, { timeout: 15_000, interval: 5 }).toBe(2 * machines);
      await ledger.kill();
      if (answers() < 2 * machines) amid += 1;
    }
    process.stdout.write(
      `${kills} kills (${amid} before the last answer), seed ${seed}: ${served.installs} installs, ${served.granted} scripts\n`,
    );
    expect(served.twice).toEqual([]);
    expect(ids.size).toBe(1);
    expect(served.installs).toBeLessThanOrEqual(machines * generation);
    expect(served.granted).toBeGreaterThan(0);
  },
  60_000 + kills * 20_000,
);
