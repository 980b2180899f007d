/** Ledgers of several members on one etcd: whoever is asked, and whoever is killed, a permit is spent once. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/lib/clock.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { LedgerProcess, openGrant, ServedInstalls } from "./ledger-processes.ts";

const rounds = Number(process.env.DAVIT_TEST_ROUNDS ?? 3);
const machines = 12;

describe.skipIf(missing("etcd"))("three members on etcd", () => {
  let etcd: EtcdMembers;
  let members: LedgerProcess[] = [];
  beforeEach(async () => {
    etcd = await startEtcdV3();
  });
  afterEach(async () => {
    await Promise.all(members.map((member) => member.kill()));
    await etcd.stop();
  });

  function start(name: string): LedgerProcess {
    const [url] = etcd.urls;
    return new LedgerProcess(["etcd", url?.href ?? "", name]);
  }

  it(
    "serve at most one install by a permit, while the leader is killed around the claim",
    async () => {
      const served = new ServedInstalls();
      members = ["a", "b", "c"].map((name) => start(name));
      await Promise.all(members.map((member) => member.ready));
      // Members that begin at once agree on one ledger.
      expect(new Set(members.map(({ id }) => id)).size).toBe(1);
      for (let round = 1; round <= rounds; round++) {
        await expect.poll(() => members.filter(({ isLeading }) => isLeading).length).toBe(1);
        const leader = members.find(({ isLeading }) => isLeading);
        const grant = openGrant(leader?.id ?? "", round, systemClock.nowMs());
        const askAll = () => {
          for (let machine = 0; machine < machines; machine++) {
            for (const member of members) served.ask(member, machine, grant);
          }
        };
        askAll();
        await systemClock.sleep(round * 5);
        await leader?.kill();
        members = members.filter((member) => member !== leader);
        // Those that live go on, and the machines come back.
        askAll();
        await systemClock.sleep(1_000);
        askAll();
        await systemClock.sleep(1_000);
        members = [...members, start(`n${round}`)];
        await Promise.all(members.map((member) => member.ready));
      }
      process.stdout.write(`${rounds} leaders killed: ${served.installs} installs, ${served.granted} scripts\n`);
      expect(served.twice).toEqual([]);
      expect(served.installs).toBe(machines * rounds);
    },
    60_000 + rounds * 30_000,
  );
});
