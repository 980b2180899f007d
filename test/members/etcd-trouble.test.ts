/** etcd without a quorum, without room, with less than it had, and with more than this davit understands. */

import { execFile } from "node:child_process";
import { cp, rm } from "node:fs/promises";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { storePath } from "../../src/store/core/node.ts";
import { type EtcdMember, type EtcdMembers, type EtcdMembersOptions, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";
import { leaderOf, openStoreMember, type StoreMember, set, settled, stateOf } from "./members.ts";

const prefix = "/davit/1/";

describe.skipIf(missing("etcd", "etcdctl"))("stores on an etcd in trouble", () => {
  let etcd: EtcdMembers;
  let members: StoreMember[] = [];
  let clients: EtcdClient[] = [];

  beforeEach(() => {
    members = [];
    clients = [];
  });
  afterEach(async () => {
    await Promise.all(members.map((member) => member.stop()));
    for (const client of clients) client.close();
    await etcd.stop();
  });

  function clientOf(endpoints: readonly URL[] = etcd.urls): EtcdClient {
    const client = EtcdClient.open({ endpoints, clock: systemClock, log: silentLog, random: () => 0 });
    clients.push(client);
    return client;
  }

  async function open(name: string, withinMs?: number): Promise<StoreMember> {
    const member = await openStoreMember(name, {
      endpoints: etcd.urls,
      prefix,
      ...(withinMs === undefined ? {} : { withinMs }),
    });
    members.push(member);
    return member;
  }

  async function openThree(options: EtcdMembersOptions = {}, withinMs?: number) {
    etcd = await startEtcdV3(options);
    const three = [await open("a", withinMs), await open("b", withinMs), await open("c", withinMs)] as const;
    await leaderOf(three);
    return three;
  }

  async function expectSameState(of: readonly StoreMember[] = members): Promise<void> {
    const [first = "", ...others] = (await settled(of)).map((store) => stateOf(store));
    for (const other of others) expect(other).toBe(first);
  }

  /** The members of etcd that lead and follow. */
  async function roles(): Promise<{ readonly leader: EtcdMember | undefined; readonly others: readonly EtcdMember[] }> {
    const states = await Promise.all(
      etcd.all.map(async (member) => ({ member, state: await clientOf([member.url]).status() })),
    );
    const leader = states.find(({ state }) => state.leader === state.header.memberId)?.member;
    return { leader, others: etcd.all.filter((member) => member !== leader) };
  }

  const refused = { name: "StoreError", refusal: "logFailed" };

  it("fails no write when etcd's leader is killed", async () => {
    const three = await openThree({ count: 3 });
    const { leader } = await roles();
    const written = await Promise.all(
      three.map(async ({ store }, at) => {
        const paths: string[] = [];
        for (let number = 0; number < 60; number++) {
          if (at === 0 && number === 20) await leader?.kill();
          const { event } = await store.submit({ kind: "createInOrder", path: storePath("/queue"), value: String(at) });
          paths.push(event.node.path);
        }
        return paths;
      }),
    );
    await expectSameState();
    for (const { store } of three) {
      const queue = [...store.dump()].filter(({ path }) => path.startsWith("/queue/")).map(({ path }) => path);
      expect(queue.toSorted()).toEqual(written.flat().toSorted());
    }
  });

  it("refuses writes without a quorum, reads on, and takes writes when the quorum is back", async () => {
    const three = await openThree({ count: 3 }, 3_000);
    await three[0].store.submit(set("/kept", "1"));
    await settled(three);
    const { others } = await roles();
    for (const member of others) member.pause();
    await Promise.all(three.map(({ store }) => expect(store.submit(set("/lost", "1"))).rejects.toMatchObject(refused)));
    const barriers = three.map(({ store }) => store.membership.barrier());
    await Promise.all(barriers.map((each) => expect(each).rejects.toMatchObject({ name: "WalError" })));
    for (const { store } of three) {
      expect(store.status).toBe("readOnly");
      expect(store.trouble).toContain("etcd");
      expect(store.get(storePath("/kept")).node.value).toBe("1");
    }
    const back = three.map(({ log }) => log.next("log can be written again"));
    for (const member of others) member.resume();
    await Promise.all(back);
    await Promise.all(three.map(({ store }, at) => store.submit(set(`/back/${at}`, "1"))));
    // The lease of the former leader lasts on, because the new leader of etcd prolongs all of them.
    await leaderOf(three);
    expect(three.map(({ store }) => store.trouble)).toEqual([undefined, undefined, undefined]);
    await expectSameState();
  });

  it("takes a write as soon as etcd is back, before a heartbeat shows it", async () => {
    etcd = await startEtcdV3();
    const member = await open("a", 1_000);
    for (const proxy of member.proxies) proxy.cut();
    await expect(member.store.submit(set("/lost", "1"))).rejects.toMatchObject(refused);
    expect(member.store.status).toBe("readOnly");
    for (const proxy of member.proxies) proxy.mend();
    await member.store.submit(set("/back", "1"));
    expect(member.store.status).toBe("writable");
  });

  it("says what to do when etcd has no room, and takes writes once it has", async () => {
    etcd = await startEtcdV3({ args: ["--quota-backend-bytes=4000000"] });
    const [client, member] = [clientOf(), await open("a")];
    await leaderOf([member]);
    const ballast = (at: number) => ({ put: { key: `other/${at}`, value: Buffer.alloc(500_000, at) } });
    const fill = async () => {
      for (let at = 0; at < 100; at++) await client.txn({ success: [ballast(at)] });
    };
    await expect(fill()).rejects.toMatchObject({ reason: "noSpace" });
    const full = { ...refused, causeText: expect.stringMatching(/quota.*defragment/) };
    await expect(member.store.submit(set("/a", "1"))).rejects.toMatchObject(full);
    expect(member.store.status).toBe("full");
    expect(member.store.trouble).toMatch(/quota.*defragment/);
    expect([...member.store.dump()]).toHaveLength(1);
    // A start needs no write.
    const late = await open("b");
    await expect.poll(() => late.store.trouble, { timeout: 10_000 }).toMatch(/quota.*defragment/);
    expect([...late.store.dump()]).toHaveLength(1);
    const back = Promise.all([member, late].map(({ log }) => log.next("log can be written again")));
    await client.deleteRange({ key: "other/", end: "other0" });
    await client.compact((await client.status()).header.revision);
    const env = { ...process.env, ETCDCTL_API: "3" };
    for (const command of [["defrag"], ["alarm", "disarm"]]) {
      await promisify(execFile)("etcdctl", ["--endpoints", etcd.urls.join(","), ...command], { env });
    }
    await back;
    await late.store.submit(set("/a", "1"));
    await settled(members);
    expect(member.store.get(storePath("/a")).node.value).toBe("1");
  });

  /** Makes etcd's data what `change` makes of them while it does not run. */
  async function changeData(change: (dataDir: string) => Promise<unknown>): Promise<void> {
    const [server] = etcd.all;
    await server?.end();
    await change(server?.dataDir ?? "");
    await server?.start();
  }

  async function expectLost(of: readonly StoreMember[], losing: readonly Promise<void>[]): Promise<void> {
    const states = of.map(({ store }) => stateOf(store));
    await Promise.all(losing);
    for (const { store } of of) {
      expect(store.status).toBe("lost");
      expect(store.trouble).toContain("restored or emptied");
      await expect(store.submit(set("/late", "1"))).rejects.toMatchObject(refused);
      await expect(store.membership.barrier()).rejects.toMatchObject({ name: "WalError" });
      expect(store.membership.isLeader).toBe(false);
    }
    expect(of.map(({ store }) => stateOf(store))).toEqual(states);
  }

  it.each([{ writes: "while members write" }, { writes: "while nobody writes" }])(
    "applies nothing of an etcd that was restored from an older copy $writes",
    async ({ writes }) => {
      const three = await openThree();
      for (const at of [1, 2, 3]) await three[0].store.submit(set(`/kept/${at}`, "1"));
      await settled(three);
      await changeData((dataDir) => cp(dataDir, `${dataDir}-copy`, { recursive: true }));
      for (const at of [1, 2, 3]) await three[0].store.submit(set(`/gone/${at}`, "1"));
      await settled(three);
      const losing = three.map(({ log }) => log.next("log is lost"));
      const head = { key: `${prefix}l/head` };
      await changeData(async (dataDir) => {
        await rm(dataDir, { recursive: true });
        await cp(`${dataDir}-copy`, dataDir, { recursive: true });
      });
      const [before] = (await clientOf().range(head)).keys;
      if (writes === "while members write") {
        await Promise.all(three.map(({ store }) => store.submit(set("/late", "1")).catch(() => undefined)));
      }
      await expectLost(three, losing);
      expect((await clientOf().range(head)).keys[0]?.modRevision).toBe(before?.modRevision);
      // A start knows nothing of what is gone.
      const fresh = await open("d");
      await leaderOf([fresh]);
      expect(fresh.store.get(storePath("/kept/3")).node.value).toBe("1");
      await fresh.store.submit(set("/fresh", "1"));
    },
  );

  it("applies nothing of an etcd that was emptied, in which another davit begins anew", async () => {
    const three = await openThree();
    for (const at of [1, 2, 3]) await three[0].store.submit(set(`/gone/${at}`, "1"));
    await settled(three);
    const losing = three.map(({ log }) => log.next("log is lost"));
    await changeData((dataDir) => rm(dataDir, { recursive: true }));
    await expectLost(three, losing);
    const fresh = await open("d");
    await leaderOf([fresh]);
    await fresh.store.submit(set("/fresh", "1"));
    expect(fresh.store.identity.clusterId).not.toBe(three[0].store.identity.clusterId);
    expect(three[0].store.getFile(storePath("/fresh"))).toBeUndefined();
  });

  it("stops at a batch that a later davit wrote, and says what to start", async () => {
    const [first, second, third] = await openThree();
    await first.store.submit(set("/a", "1"));
    await settled(members);
    const losing = [first, second, third].map(({ log }) => log.next("log is lost"));
    const [client, value] = [clientOf(), Buffer.from([3, 0, 1, 2, 3])];
    const [head, batch] = [`${prefix}l/head`, `${prefix}l/0/later/1`];
    await client.txn({
      success: [{ put: { key: head, value: Buffer.from("later/1") } }, { put: { key: batch, value } }],
    });
    await Promise.all(losing);
    for (const { store } of members) {
      expect(store.status).toBe("lost");
      expect(store.trouble).toMatch(/its version is 3 and this davit knows 2; start the davit that wrote it/);
      expect(store.get(storePath("/a")).node.value).toBe("1");
      await expect(store.submit(set("/late", "1"))).rejects.toMatchObject(refused);
    }
    await expect(open("d")).rejects.toMatchObject({ name: "WalError", reason: "newerFormat" });
  });
});
