/** Two davits with one URL: the members know each other by it, so only one of them may run. */

import { afterEach, describe, expect, it, vi } from "vitest";
import { EtcdClient, EtcdError } from "../../packages/etcd-client/src/etcd-client.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { Layout } from "../../src/store/etcd/layout.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";
import { leaderOf, membersOnOneEtcd, set, settled } from "./members.ts";

describe.skipIf(missing("etcd"))("two davits with one URL", () => {
  const members = membersOnOneEtcd();
  const { open } = members;
  afterEach(() => {
    vi.restoreAllMocks();
  });

  const locked = { name: "WalError", reason: "locked", message: expect.stringContaining("http://b.test") };

  it.each([
    { who: "leads", names: ["b", "a"] },
    { who: "follows", names: ["a", "b"] },
  ])("refuse the second one while the first one $who", async ({ names }) => {
    const [first = "", second = ""] = names;
    const leader = await open(first);
    await leaderOf([leader]);
    const other = await open(second);
    await expect(open("b")).rejects.toMatchObject(locked);
    await expect(open("b")).rejects.toThrow(/--store-advertise-url of its own/);
    await Promise.all([leader, other].map(({ store }, at) => store.submit(set(`/${at}`, "1"))));
    for (const { membership } of await settled(members.all)) expect(membership.members).toHaveLength(2);
  });

  it("refuse the second one when the first one leads, and could not register as it joined", async () => {
    const { txn } = EtcdClient.prototype;
    let failures = 0;
    vi.spyOn(EtcdClient.prototype, "txn").mockImplementation(async function (this: EtcdClient, ...args) {
      const isRegistration = JSON.stringify(args[0].when ?? []).includes("/members/");
      if (!isRegistration || failures > 0) return await txn.apply(this, args);
      failures += 1;
      throw new EtcdError("lost", { reason: "unavailable", mayBeDone: true, endpoint: "http://etcd.test" });
    });
    await leaderOf([await open("b")]);
    expect(failures).toBe(1);
    await expect(open("b")).rejects.toMatchObject(locked);
  });

  it("refuse the second one after somebody has removed the key of the first one, which leads", async () => {
    const first = await open("b");
    await leaderOf([first]);
    const client = EtcdClient.open({
      endpoints: members.endpoints,
      clock: systemClock,
      log: silentLog,
      random: () => 0,
    });
    const { members: keys } = new Layout(members.prefix);
    await client.deleteRange(keys);
    await expect.poll(async () => (await client.range(keys)).keys.length, { timeout: 10_000 }).toBe(1);
    client.close();
    await expect(open("b")).rejects.toMatchObject(locked);
  });

  it("do not start the second one on a log that was lost while it waited for the first one's end", async () => {
    const first = await open("b");
    await leaderOf([first]);
    for (const proxy of first.proxies) proxy.cut();
    const { promise: waiting, resolve: waits } = Promise.withResolvers<void>();
    const sleep: Clock["sleep"] = (durationMs, signal) => {
      if (durationMs === 250) waits();
      return systemClock.sleep(durationMs, signal);
    };
    const { endpoints, prefix } = members;
    const opening = open("b", { clock: { ...systemClock, sleep } });
    await waiting;
    const client = EtcdClient.open({ endpoints, clock: systemClock, log: silentLog, random: () => 0 });
    const layout = new Layout(prefix);
    const [key, value] = [layout.batch({ epoch: 0, id: "1/1" }), Uint8Array.of(99)];
    await client.txn({ success: [{ put: { key: layout.head, value: "1/1" } }, { put: { key, value } }] });
    client.close();
    await expect(opening).rejects.toMatchObject({ name: "WalError", reason: "newerFormat" });
  });

  it("start the second one once the first one has stopped, or is lost", async () => {
    const [a, b] = [await open("a"), await open("b")];
    await leaderOf([a]);
    await b.stop();
    const restarted = await open("b");
    for (const proxy of restarted.proxies) proxy.cut();
    const replaced = await open("b");
    await replaced.store.submit(set("/replaced", "1"));
    const losing = restarted.log.next("log is lost");
    for (const proxy of restarted.proxies) proxy.mend();
    await losing;
    expect(restarted.store.trouble).toMatch(/another davit with the URL http:\/\/b\.test runs/);
    await expect(restarted.store.submit(set("/late", "1"))).rejects.toMatchObject({ refusal: "logFailed" });
    await replaced.store.submit(set("/replaced", "2"));
    members.all = [a, replaced, restarted];
  });
});
