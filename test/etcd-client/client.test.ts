/** The client of etcd v3 against one server: requests, transactions, watches and leases. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { prefixEnd } from "../../src/store/etcd/layout.ts";
import { startEtcdProxy } from "../helpers/etcd-proxy.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";

async function allOf<T>(parts: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const part of parts) all.push(part);
  return all;
}

describe.skipIf(missing("etcd"))("EtcdClient", () => {
  let members: EtcdMembers;
  let client: EtcdClient;
  const options = { clock: systemClock, log: silentLog, random: () => 0 };
  const bytes = (text: string) => Buffer.from(text);
  const put = (key: string, value = key) => ({ put: { key, value: bytes(value) } });

  beforeAll(async () => {
    members = await startEtcdV3();
    client = EtcdClient.open({ ...options, endpoints: members.urls });
  });

  afterAll(async () => {
    client.close();
    await members.stop();
  });

  it("puts and reads keys in a transaction", async () => {
    const first = await client.txn({
      when: [{ key: "a/1", is: "equal", version: 0 }],
      success: [put("a/1", "one"), put("a/2", "two")],
      failure: [{ range: { key: "a/1" } }],
    });
    expect(first).toMatchObject({ succeeded: true, answers: [{ keys: [] }, { keys: [] }] });
    const again = await client.txn({
      when: [{ key: "a/1", is: "equal", version: 0 }],
      success: [put("a/1")],
      failure: [{ range: { key: "a/1" } }],
    });
    expect(again.succeeded).toBe(false);
    const [found] = again.answers[0]?.keys ?? [];
    expect(found).toMatchObject({ key: "a/1", version: 1, modRevision: first.header.revision, lease: 0n });
    expect(Buffer.from(found?.value ?? []).toString()).toBe("one");
    const all = await client.range({ key: "a/", end: prefixEnd("a/"), limit: 1 });
    expect(all).toMatchObject({ more: true, keys: [{ key: "a/1" }] });
    expect(await client.deleteRange({ key: "a/", end: prefixEnd("a/") })).toBe(2);
  });

  it("watches what was and what comes, without deletions", async () => {
    const { header } = await client.txn({ success: [put("w/1")] });
    const stop = new AbortController();
    const watch = { key: "w/", end: prefixEnd("w/"), startRevision: header.revision, noDeletes: true };
    const parts = client.watch(watch, { signal: stop.signal });
    expect((await parts.next()).value).toMatchObject({ events: [] });
    expect((await parts.next()).value).toMatchObject({ events: [{ kind: "put", key: { key: "w/1" } }] });
    await client.deleteRange({ key: "w/1" });
    await client.txn({ success: [put("w/2")] });
    expect((await parts.next()).value).toMatchObject({ events: [{ kind: "put", key: { key: "w/2" } }] });
    const next = parts.next();
    stop.abort();
    expect(await next).toEqual({ done: true, value: undefined });
  });

  it("says which revision is the oldest when a watch begins before it", async () => {
    const { header } = await client.txn({ success: [put("c/1")] });
    const { header: second } = await client.txn({ success: [put("c/1")] });
    await client.compact(second.revision);
    await client.compact(header.revision);
    const { signal } = new AbortController();
    const watch = client.watch({ key: "c/1", startRevision: header.revision }, { signal });
    await expect(allOf(watch)).rejects.toMatchObject({
      name: "EtcdError",
      reason: "compacted",
      compactRevision: second.revision,
    });
    await expect(client.range({ key: "c/1", revision: header.revision })).rejects.toMatchObject({
      reason: "compacted",
    });
  });

  it("keeps a lease and ends it", async () => {
    const lease = await client.leaseGrant(60);
    await client.txn({ success: [{ put: { key: "l", value: bytes("x"), lease: lease.id } }] });
    const stop = new AbortController();
    const sent: number[] = [];
    for await (const { sentAtMs, ttlSeconds } of client.keepAlive(lease.id, { everyMs: 10, signal: stop.signal })) {
      expect(ttlSeconds).toBe(60);
      sent.push(sentAtMs);
      if (sent.length === 3) stop.abort();
    }
    expect(sent).toHaveLength(3);
    await client.leaseRevoke(lease.id);
    await client.leaseRevoke(lease.id);
    expect(await client.range({ key: "l" })).toMatchObject({ keys: [] });
    const gone = allOf(client.keepAlive(lease.id, { everyMs: 10, signal: new AbortController().signal }));
    await expect(gone).rejects.toMatchObject({ reason: "leaseNotFound" });
    const put = client.txn({ success: [{ put: { key: "l", value: bytes("x"), lease: lease.id } }] });
    await expect(put).rejects.toMatchObject({ reason: "leaseNotFound", mayBeDone: false });
  });

  it("knows that a transaction may have been done when its answer is lost", async () => {
    const proxy = await startEtcdProxy(new URL(members.urls[0] ?? ""));
    const cut = EtcdClient.open({ ...options, endpoints: [proxy.url] });
    const { signal } = new AbortController();
    const watch = client.watch({ key: "lost/", end: prefixEnd("lost/") }, { signal });
    await watch.next();
    const isNew = (key: string) => ({ key, is: "equal", version: 0 }) as const;
    // The connection is there before its answers are held.
    await cut.range({ key: "lost/1" });
    proxy.holdAnswers();
    const unknown = cut.txn({ when: [isNew("lost/1")], success: [put("lost/1")] });
    await watch.next();
    proxy.cut();
    proxy.mend();
    await expect(unknown).rejects.toMatchObject({ reason: "unavailable", mayBeDone: true });
    await cut.range({ key: "lost/1" });
    proxy.holdAnswers();
    const repeated = cut.txn(
      { when: [isNew("lost/2")], success: [put("lost/2")], failure: [{ range: { key: "lost/2" } }] },
      { repeat: true },
    );
    await watch.next();
    proxy.cut();
    proxy.mend();
    // The second try finds what the first one did.
    expect(await repeated).toMatchObject({ succeeded: false, answers: [{ keys: [{ key: "lost/2", version: 1 }] }] });
    cut.close();
    await proxy.stop();
    await watch.return();
  });
});
