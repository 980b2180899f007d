/** Keys with a ttl that clients write at a member whose reading of the leader's clock is old, or whose etcd is slow. */

import { afterEach, describe, expect, it, vi } from "vitest";
import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { storePath } from "../../src/store/core/node.ts";
import { missing } from "../helpers/requirements.ts";
import { clockOff, leaderOf, membersOnOneEtcd, type StoreMember, set, settled, stateOf } from "./members.ts";

const path = storePath("/a");
const minuteMs = 60_000;

describe.skipIf(missing("etcd"))("a key with a ttl", { timeout: 60_000 }, () => {
  const members = membersOnOneEtcd();
  afterEach(() => {
    vi.restoreAllMocks();
  });

  /** Until the returned function is called, the leader's key has a reading of a minute ago, which answers nobody. */
  function oldHeartbeats(): () => void {
    const { txn } = EtcdClient.prototype;
    let isOld = true;
    vi.spyOn(EtcdClient.prototype, "txn").mockImplementation(async function (this: EtcdClient, request, options) {
      const success = request.success.map((operation) => {
        const isBeat = isOld && "put" in operation && operation.put.key === `${members.prefix}leader`;
        if (!isBeat) return operation;
        const { atMs, asked: _, ...fields } = JSON.parse(Buffer.from(operation.put.value).toString());
        const value = JSON.stringify({ ...fields, asked: {}, ...(atMs && { atMs: atMs - minuteMs }) });
        return { put: { ...operation.put, value } };
      });
      return await txn.call(this, { ...request, success }, options);
    });
    return () => {
      isOld = false;
    };
  }

  it("is written at a member that just started, once that member knows the leader's time", async () => {
    const goOn = oldHeartbeats();
    const leader = await members.open("a");
    await leaderOf([leader]);
    const started = await members.open("b");
    expect(started.store.membership.behindMs).toBe(Number.POSITIVE_INFINITY);
    const written = started.store.submit(set("/a", "1", 30));
    // A key without a ttl waits for nothing.
    await started.store.submit(set("/b", "1"));
    await settled([leader, started]);
    expect(leader.store.getFile(path)).toBeUndefined();
    goOn();
    const { event } = await written;
    await settled([leader]);
    const left = (event.node.expiresAtMs ?? 0) - leader.store.membership.nowMs();
    // Thirty seconds less what this test took, and not a minute less.
    expect(left).toBeGreaterThan(0);
    expect(started.store.membership.behindMs).toBeLessThan(minuteMs);
  });

  it("is written at once at the leader, and at a member that has heard it", async () => {
    const [leader, other] = [await members.open("a"), await members.open("b", { clock: clockOff(3 * minuteMs) })];
    await leaderOf([leader, other]);
    for (const { store } of [leader, other]) await store.submit(set("/a", "1", 30));
    expect(leader.store.membership.behindMs).toBeLessThan(minuteMs);
    expect(other.store.membership.behindMs).toBeLessThan(minuteMs);
    expect(await wrongOf([leader, other])).toBeUndefined();
  });

  it("has its whole ttl on all members when etcd's answer was late", async () => {
    const [leader, other] = [await members.open("a"), await members.open("b")];
    await leaderOf([leader, other]);
    await other.store.submit(set("/a", "1", 30));
    const { indexes } = other.store;
    for (const proxy of other.proxies) proxy.pause();
    const written = other.store.submit(set("/a", "2", 30));
    await new Promise((resolve) => setTimeout(resolve, 300));
    for (const proxy of other.proxies) proxy.resume();
    const { event } = await written;
    const stores = await settled([leader, other]);
    for (const store of stores) {
      expect(store.indexes.storeIndex).toBe(indexes.storeIndex + 1);
      // The write, and the record after it that sets another end.
      expect(store.indexes.raftIndex).toBeGreaterThanOrEqual(indexes.raftIndex + 2);
      expect(store.get(path).node.expiresAtMs).toBe(event.node.expiresAtMs);
    }
    expect(await wrongOf([leader, other])).toBeUndefined();
  });
});

/** The first state that differs from that of the first member; undefined if all are alike. */
async function wrongOf(members: readonly StoreMember[]): Promise<string | undefined> {
  const [first, ...others] = (await settled(members)).map((store) => stateOf(store));
  return others.find((state) => state !== first);
}
