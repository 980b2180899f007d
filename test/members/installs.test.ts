/** Three davits on one etcd, each with the ledger: whoever is asked, and whoever dies, a machine installs at most once. */

import { cp, rm } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DavitProcess } from "../../tools/davit-process.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { bootOf, configOf, InstallWorld, ledgerId, report } from "../helpers/install-world.ts";
import { missing } from "../helpers/requirements.ts";

const soon = { timeout: 60_000, interval: 50 };

describe.skipIf(missing("etcd"))("three davits on one etcd", { timeout: 300_000 }, () => {
  let world: InstallWorld;
  let etcd: EtcdMembers;
  beforeEach(async () => {
    world = await InstallWorld.make();
    etcd = await startEtcdV3();
  });
  afterEach(async () => {
    await world.stop();
    await etcd.stop();
  });

  const start = (number: number): Promise<DavitProcess> =>
    world.serve(
      [
        ...["--store-etcd-endpoints", etcd.urls.map(({ origin }) => origin).join(",")],
        ...["--store-advertise-url", `http://127.0.0.1:${21_000 + number}`, "--limit", "store-etcd-lease=2s"],
      ],
      { dataDir: world.at(`data-${number}`) },
    );

  const leads = (part: string, { log }: DavitProcess) =>
    log.filter((line) => line.part === part && line.msg === "elected leader").length >
    log.filter((line) => line.part === part && line.msg === "leads no more").length;

  it("share one ledger, and the death of its leader around claims gives no machine a second install", async () => {
    const all = await Promise.all([1, 2, 3].map(start));
    const ledgers = await Promise.all(all.map(ledgerId));
    expect(new Set(ledgers).size).toBe(1);
    await world.write({ grant: { generation: 1, ledger: ledgers[0] ?? "" } });
    for (const davit of all) await expect.poll(() => bootOf(davit, 9), soon).toBe("install");
    const leader = all.find((davit) => leads("ledger", davit)) ?? all[0];
    const machines = Array.from({ length: 30 }, (_, at) => 100 + at);
    // Every machine asks every davit, again and again, while the leader dies.
    let isOver = false;
    const ask = async (number: number) => {
      for (let round = 0; !isOver; round++) {
        const davit = all[(number + round) % all.length];
        if (davit !== undefined) await bootOf(davit, number).catch(() => "gone");
      }
    };
    const asking = machines.map(ask);
    await setTimeout(500);
    await leader?.stop("SIGKILL");
    await setTimeout(6_000);
    isOver = true;
    await Promise.all(asking);
    const others = all.filter((davit) => davit !== leader);
    const [first, second] = others;
    if (first === undefined || second === undefined) throw new Error("Two davits are left");
    for (const number of machines) {
      await expect.poll(() => bootOf(first, number), soon).toMatch(/^(install|disk)$/);
      // Reading the config ends the time in which the script is repeated: for every davit.
      const path = await configOf(second, number);
      expect(path).toMatch(/^\/report\//);
      expect([await bootOf(second, number), await bootOf(first, number)]).toEqual(["disk", "disk"]);
      expect(await report(first, path)).toBe(200);
    }
    // One entry for each machine, with one generation spent.
    const ledger = await (await fetch(`${first.opsUrl}/ledger`)).json();
    expect(ledger).toMatchObject({ id: ledgers[0], entries: machines.length + 1 });
    const again = await start(all.indexOf(leader ?? first) + 1);
    expect(await ledgerId(again)).toBe(ledgers[0]);
    for (const number of machines) expect(await bootOf(again, number)).toBe("disk");
  });

  // Each of them must see it: the one that has claimed, and one that has only followed.
  it.each([1, 2])("open no install again after etcd was restored; davit %i starts first", async (number) => {
    const [first, second] = [await start(1), await start(2)];
    const ledger = await ledgerId(first);
    await world.write({ grant: { generation: 1, ledger } });
    for (const davit of [first, second]) await expect.poll(() => bootOf(davit, 9), soon).toBe("install");
    await restart((dataDir) => cp(dataDir, `${dataDir}-copy`, { recursive: true }));
    await expect.poll(() => bootOf(first, 1), soon).toBe("install");
    // An installer asks again, too, while the beginning of its install is not logged yet.
    await expect.poll(() => configOf(first, 1), soon).toMatch(/^\/report\//);
    expect(await report(first, await configOf(first, 1))).toBe(200);
    for (const davit of [first, second]) await davit.stop();
    await restart(async (dataDir) => {
      await rm(dataDir, { recursive: true });
      await cp(`${dataDir}-copy`, dataDir, { recursive: true });
    });

    const again = [await start(number), await start(3 - number)];
    expect(await answersOf(again, 1)).not.toContain("install");
    const ids = await Promise.all(again.map(ledgerId));
    expect([new Set(ids).size, ids.includes(ledger)]).toEqual([1, false]);
    // The new ledger grants as any other.
    await world.write({ grant: { generation: 2, ledger: ids[0] ?? "", scope: "All" } });
    for (const davit of again) await expect.poll(() => bootOf(davit, 1), soon).toBe("install");
  });

  /** What a machine is answered in three seconds. */
  async function answersOf(davits: readonly DavitProcess[], machine: number): Promise<readonly string[]> {
    const found = new Set<string>();
    for (let asked = 0; asked < 60; asked++) {
      for (const davit of davits) found.add(await bootOf(davit, machine));
      await setTimeout(50);
    }
    return [...found];
  }

  async function restart(change: (dataDir: string) => Promise<unknown>): Promise<void> {
    const [server] = etcd.all;
    await server?.end();
    await change(server?.dataDir ?? "");
    await server?.start();
  }
});
