/** Ledgers of several members on one etcd: whoever is asked, and whoever is killed, a permit is spent once. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/lib/clock.ts";
import { type EtcdMembers, startEtcdV3 } from "../../helpers/etcd-v3.ts";
import { missing } from "../../helpers/requirements.ts";
import { LedgerProcess, openGrant, ServedInstalls } from "./ledger-processes.ts";

const kills = Number(process.env.DAVIT_TEST_KILLS ?? 3);
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
      for (let kill = 1; kill <= kills; kill++) {
        await expect.poll(() => members.filter(({ isLeading }) => isLeading).length).toBe(1);
        const leader = members.find(({ isLeading }) => isLeading);
        const grant = openGrant(leader?.id ?? "", kill, systemClock.nowMs());
        const askAll = () => {
          for (let machine = 0; machine < machines; machine++) {
            for (const member of members) served.ask(member, machine, grant);
          }
        };
        askAll();
        // From before the first claim is logged until after the last one.
        await systemClock.sleep((kill * 7) % 40);
        await leader?.kill();
        members = members.filter((member) => member !== leader);
        // Those that live go on, and the machines come back.
        askAll();
        await systemClock.sleep(1_000);
        askAll();
        await systemClock.sleep(1_000);
        members = [...members, start(`n${kill}`)];
        await Promise.all(members.map((member) => member.ready));
      }
      process.stdout.write(`${kills} leaders killed: ${served.installs} installs, ${served.granted} scripts\n`);
      expect(served.twice).toEqual([]);
      expect(served.installs).toBe(machines * kills);
    },
    60_000 + kills * 30_000,
  );
});
