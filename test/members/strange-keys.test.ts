/** Somebody writes what no davit writes among the keys of the members: it ends no member, and no start. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";
import { leaderOf, membersOnOneEtcd, set, settled, stateOf } from "./members.ts";

const soon = { timeout: 20_000, interval: 50 };
const reported = "etcd has a key that no davit wrote, and davit ignores it";

describe.skipIf(missing("etcd"))("a key that no davit wrote", { timeout: 60_000 }, () => {
  const members = membersOnOneEtcd();
  let client: EtcdClient;
  beforeEach(() => {
    client = EtcdClient.open({ endpoints: members.endpoints, clock: systemClock, log: silentLog, random: () => 0 });
  });
  afterEach(() => client.close());

  const keyOf = (name: string) => `${members.prefix}${name}`;
  const put = (key: string, value: string) => client.txn({ success: [{ put: { key, value: value } }] });

  it.each([
    { key: "members/zzz", value: "not-json" },
    { key: "members/zzz", value: "{}" },
    { key: "members/zzz", value: "null" },
    { key: "members/zzz", value: '{"id":"zzz","name":"z","clientUrls":["javascript:alert(1)"],"askedAtMs":1}' },
    { key: "members/__proto__", value: '{"id":1}' },
    { key: "members/", value: "" },
  ])("is ignored and reported: $key = $value", async ({ key: name, value }) => {
    const two = [await members.open("a"), await members.open("b")];
    await leaderOf(two);
    const key = keyOf(name);
    await put(key, value);
    for (const { store, log } of two) {
      await expect.poll(() => [...store.membership.strangeKeys], soon).toEqual([key]);
      expect(log.messages).toContain(reported);
      expect(store.membership.members).toHaveLength(2);
      await store.submit(set("/a", "1", 30));
    }
    const third = await members.open("c");
    await third.store.submit(set("/a", "2"));
    await client.deleteRange({ key });
    for (const { store } of two) await expect.poll(() => store.membership.strangeKeys.size, soon).toBe(0);
    await settled(members.all);
  });

  it.each(["evil", '{"id":"evil"}', '{"id":"evil","term":1}'])(
    "at the leader's key does not end the leader: %s",
    async (value) => {
      const two = [await members.open("a"), await members.open("b")];
      const leader = await leaderOf(two);
      const key = keyOf("leader");
      await put(key, value);
      const isWrittenAgain = async () => (await client.range({ key })).keys[0]?.lease !== 0n;
      await expect.poll(isWrittenAgain, soon).toBe(true);
      for (const { store } of two) {
        await store.submit(set("/a", "1", 30));
        expect(store.membership.leaderId).toBe(leader.store.identity.memberId);
      }
      expect(leader.log.messages).not.toContain("leads no more");
    },
  );

  it("at the leader's key, where nobody leads, is removed by the next leader", async () => {
    const first = await members.open("a");
    await leaderOf([first]);
    await first.stop();
    members.all = [];
    await put(keyOf("leader"), "evil");
    const next = await members.open("b");
    await leaderOf([next]);
    await next.store.submit(set("/a", "1", 30));
    await expect.poll(() => next.store.membership.strangeKeys.size, soon).toBe(0);
  });

  it("at a member's own key is written over", async () => {
    const two = [await members.open("a"), await members.open("b")];
    await leaderOf(two);
    for (const { store } of two) {
      const key = keyOf(`members/${store.identity.memberId}`);
      await put(key, "evil");
      await expect.poll(async () => (await client.range({ key })).keys[0]?.lease !== 0n, soon).toBe(true);
      await client.deleteRange({ key });
      await put(key, "evil again");
      await expect.poll(async () => (await client.range({ key })).keys[0]?.lease !== 0n, soon).toBe(true);
      await store.submit(set("/a", "1", 30));
      expect(store.status).toBe("writable");
    }
    await two[1]?.stop();
    members.all = two.slice(0, 1);
    const key = keyOf(`members/${two[1]?.store.identity.memberId}`);
    await put(key, "evil at rest");
    const again = await members.open("b");
    await again.store.submit(set("/a", "2", 30));
  });

  it.each(["l/NaN/x/1", "l/../x", "l/0", "l/0/x", "zzz"])(
    "among the batches or elsewhere is ignored: %s",
    async (name) => {
      const two = [await members.open("a"), await members.open("b")];
      await leaderOf(two);
      await two[0]?.store.submit(set("/a", "1"));
      await put(keyOf(name), "1");
      for (const { store } of two) await store.submit(set("/a", "2"));
      const third = await members.open("c");
      await third.store.submit(set("/a", "3"));
      for (const store of await settled([...two, third])) expect(store.status).toBe("writable");
      expect(third.log.messages.includes(reported)).toBe(name.startsWith("l/"));
    },
  );

  it.each(["NaN", "", "-1", "1e3", "02", "0"])("at the epoch ends the log, and loses nothing: %j", async (value) => {
    const first = await members.open("a");
    await leaderOf([first]);
    // As a snapshot does.
    await put(keyOf("epoch"), "1");
    await first.store.submit(set("/a", "1"));
    await put(keyOf("epoch"), value);
    const cure = `the key "${keyOf("epoch")}" has a value that no davit wrote: put the number after the highest N of`;
    await expect(first.store.submit(set("/a", "2"))).rejects.toThrow(cure);
    expect(first.store.status).toBe("lost");
    await first.stop();
    members.all = [];
    if (value !== "0") await expect(members.open("b")).rejects.toThrow(cure);
    await put(keyOf("epoch"), "2");
    const next = await members.open("c");
    await leaderOf([next]);
    await next.store.submit(set("/b", "1"));
    expect(stateOf(next.store)).toContain('"path": "/a"');
  });

  it("at the epoch, far too high, keeps no snapshot from deleting what is old", async () => {
    const first = await members.open("a");
    await leaderOf([first]);
    await first.store.submit(set("/a", "1"));
    await put(keyOf("epoch"), "999999999999");
    await put(keyOf("l/1/x"), "no davit's");
    await first.store.submit(set("/a", "2"));
    expect(await first.store.purge()).toBe(true);
    const inLog = async () => (await client.range({ key: keyOf("l/"), end: keyOf("l0"), keysOnly: true })).keys;
    const epochs = (await inLog()).map(({ key }) => key.slice(keyOf("l/").length).split("/")[0]);
    expect([...new Set(epochs)].filter((epoch) => Number(epoch) < 1_000_000_000_000)).toEqual([]);
    await first.store.submit(set("/a", "3"));
    const second = await members.open("b");
    for (const store of await settled([first, second])) expect(store.status).toBe("writable");
  });

  it.each(["meta", "snap/current"])("in place of the key %s refuses a start, which names the key", async (name) => {
    const first = await members.open("a");
    await leaderOf([first]);
    await first.store.submit(set("/a", "1"));
    await first.stop();
    members.all = [];
    await put(keyOf(name), "{}");
    const problem = `Reading the key "${keyOf(name)}" in etcd: it is not what davit writes; restore a backup`;
    await expect(members.open("b")).rejects.toThrow(problem);
  });

  it("of the level, which 0.2 left, counts for nothing", async () => {
    const first = await members.open("a");
    await leaderOf([first]);
    await put(keyOf("level"), "abc");
    const second = await members.open("b");
    for (const { store } of [first, second]) await store.submit(set("/a", "1", 30));
    const third = await members.open("c");
    await third.store.submit(set("/a", "2"));
    for (const store of await settled([first, second, third])) expect(store.status).toBe("writable");
  });
});
