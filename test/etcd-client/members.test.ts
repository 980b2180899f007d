/** The client of etcd v3 over three members while some are killed, stand still or come back. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { EtcdClient, type EtcdClientOptions } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { type EtcdMember, type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";

describe.skipIf(missing("etcd"))("EtcdClient over three members", () => {
  let members: EtcdMembers;
  let client: EtcdClient;
  const clients: EtcdClient[] = [];
  const open = (options: Partial<EtcdClientOptions> = {}) => {
    const opened = EtcdClient.open({
      endpoints: members.urls,
      clock: systemClock,
      log: silentLog,
      random: () => 0,
      ...options,
    });
    clients.push(opened);
    return opened;
  };
  const put = (key: string) => ({ put: { key, value: Buffer.from(key) } });
  const isNew = (key: string) => ({ key, is: "equal", version: 0 }) as const;

  beforeAll(async () => {
    members = await startEtcdV3({ count: 3 });
  });

  beforeEach(() => {
    client = open();
  });

  afterAll(async () => {
    for (const each of clients) each.close();
    await members.stop();
  });

  /** The member that leads, and the others. */
  async function roles(): Promise<{ readonly leader: EtcdMember; readonly others: readonly EtcdMember[] }> {
    const states = await Promise.all(
      members.all.map(async (member) => ({ member, state: await open({ endpoints: [member.url] }).status() })),
    );
    const isLeader = ({ state }: (typeof states)[number]) => state.leader === state.header.memberId;
    const leader = states.find(isLeader)?.member;
    if (leader === undefined) throw new Error("no leader");
    return { leader, others: members.all.filter((member) => member !== leader) };
  }

  it("goes on when the leader is killed, and writes each key once", async () => {
    const { leader } = await roles();
    const keys = Array.from({ length: 40 }, (_, at) => `killed/${at}`);
    for (const [at, key] of keys.entries()) {
      if (at === 20) await leader.kill();
      await client.txn({ when: [isNew(key)], success: [put(key)] }, { repeat: true });
    }
    await leader.start();
    const { keys: found } = await client.range({ key: "killed/", end: "killed0" });
    expect(found.map(({ key }) => key).toSorted()).toEqual(keys.toSorted());
    expect(found.every(({ version }) => version === 1)).toBe(true);
  });

  it("asks the leader first, also the next one", async () => {
    const { leader, others } = await roles();
    const asking = open({ endpoints: [...others, leader].map(({ url }) => url) });
    const asked = async () => {
      await asking.range({ key: "x" });
      return (await asking.status()).endpoint;
    };
    await expect.poll(asked).toBe(leader.url.origin);
    await leader.kill();
    await asking.txn({ success: [put("next")] }, { repeat: true });
    await leader.start();
    const { leader: next } = await roles();
    expect(next).not.toBe(leader);
    await expect.poll(asked).toBe(next.url.origin);
  });

  it("asks another member when the first one stands still", async () => {
    const { others } = await roles();
    const [still] = others;
    if (still === undefined) throw new Error("no follower");
    // Without the leader, which would be asked first.
    const urls = others.map(({ url }) => url);
    const [reader, writer] = [open({ endpoints: urls }), open({ endpoints: urls })];
    for (const each of [reader, writer]) await each.range({ key: "x" });
    still.pause();
    try {
      await reader.range({ key: "x" });
      // A transaction that must not run twice is left to the caller as soon as its outcome is unknown.
      const sent = writer.txn({ success: [put("unknown")] });
      await expect(sent).rejects.toMatchObject({ reason: "unavailable", mayBeDone: true, endpoint: still.url.origin });
      await writer.txn({ success: [put("unknown")] });
      // A client without a connection knows that it sent nothing.
      await open({ endpoints: urls }).txn({ success: [put("unknown")] });
    } finally {
      still.resume();
    }
  });

  it("ends a watch at a member that stands still; the next one is at another member", async () => {
    const { others } = await roles();
    const [still] = others;
    if (still === undefined) throw new Error("no follower");
    const watcher = open({ endpoints: [still.url, ...members.urls.filter((url) => url !== still.url)] });
    const stop = new AbortController();
    const watch = watcher.watch({ key: "moved" }, { signal: stop.signal });
    await watch.next();
    still.pause();
    try {
      await expect(watch.next()).rejects.toMatchObject({ reason: "unavailable", endpoint: still.url.origin });
      const next = watcher.watch({ key: "moved" }, { signal: stop.signal });
      await next.next();
      await client.txn({ success: [put("moved")] });
      expect((await next.next()).value).toMatchObject({ events: [{ key: { key: "moved" } }] });
      await next.return();
    } finally {
      still.resume();
    }
  });

  it("says that it has no leader while two of three stand still, and goes on at once", async () => {
    const { others } = await roles();
    const [first, second] = others;
    first?.pause();
    second?.pause();
    const lost = client.txn({ when: [isNew("quorum")], success: [put("quorum")] }, { repeat: true, withinMs: 3_000 });
    await expect(lost).rejects.toMatchObject({ reason: "unavailable" });
    const waiting = client.txn({ when: [isNew("quorum")], success: [put("quorum")] }, { repeat: true });
    first?.resume();
    second?.resume();
    await waiting;
    expect(await client.range({ key: "quorum" })).toMatchObject({ keys: [{ version: 1 }] });
  });

  it("knows that nothing was done when no member runs, and goes on when they are back", async () => {
    await Promise.all(members.all.map((member) => member.kill()));
    const refused = client.txn({ success: [put("refused")] }, { withinMs: 500 });
    await expect(refused).rejects.toMatchObject({ reason: "unavailable", mayBeDone: false });
    await expect(refused).rejects.toThrow(/^etcd at http:\/\/127\.0\.0\.1:\d+: nothing listens there$/);
    const signal = AbortSignal.timeout(60_000);
    const waiting = client.txn(
      { when: [isNew("back")], success: [put("back")] },
      { repeat: true, withinMs: 60_000, signal },
    );
    await Promise.all(members.all.map((member) => member.start()));
    await waiting;
    expect(await client.range({ key: "refused" })).toMatchObject({ keys: [] });
    expect(await client.range({ key: "back" })).toMatchObject({ keys: [{ version: 1 }] });
  });

  it("keeps a lease while each member in turn ends in order", async () => {
    const { id } = await client.leaseGrant(10);
    await client.txn({ success: [{ put: { key: "leased", value: Buffer.from("x"), lease: id } }] });
    const stop = new AbortController();
    let renewals = 0;
    const kept = (async () => {
      for await (const { ttlSeconds } of client.keepAlive(id, { everyMs: 200, signal: stop.signal })) {
        if (ttlSeconds === 10) renewals++;
      }
    })();
    for (const member of members.all) {
      await member.end();
      await client.range({ key: "leased" });
      await member.start();
    }
    expect(await client.range({ key: "leased" })).toMatchObject({ keys: [{ lease: id }] });
    stop.abort();
    await kept;
    expect(renewals).toBeGreaterThan(0);
  });
});
