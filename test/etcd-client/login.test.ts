/** Users of etcd: the client fetches a token, and another one when etcd has lost it. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { type EtcdMember, type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";

describe.skipIf(missing("etcd"))("EtcdClient with a user", () => {
  let members: EtcdMembers;
  let member: EtcdMember;
  const clients: EtcdClient[] = [];

  beforeAll(async () => {
    members = await startEtcdV3({ args: ["--auth-token-ttl=1"] });
    const [first] = members.all;
    if (first === undefined) throw new Error("no member");
    member = first;
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    const range = { key: base64("davit/"), range_end: base64("davit0"), permType: "READWRITE" };
    await ask("auth/user/add", { name: "root", password: "root password" });
    await ask("auth/role/add", { name: "root" });
    await ask("auth/user/grant", { user: "root", role: "root" });
    await ask("auth/user/add", { name: "davit", password: "a password" });
    await ask("auth/role/add", { name: "davit" });
    await ask("auth/role/grant", { name: "davit", perm: range });
    await ask("auth/user/grant", { user: "davit", role: "davit" });
    const client = open("davit", "a password");
    // etcd has no users yet: the client goes on without a token, and fetches one once there are.
    await client.range({ key: "davit/before" });
    await ask("auth/enable", {});
    await client.range({ key: "davit/after" });
  });

  afterAll(async () => {
    for (const client of clients) client.close();
    await members.stop();
  });

  function open(username: string, password: string): EtcdClient {
    const credentials = { username, password: async () => password };
    const options = { endpoints: members.urls, clock: systemClock, log: silentLog, random: () => 0 };
    const client = EtcdClient.open({ ...options, credentials });
    clients.push(client);
    return client;
  }

  /** etcd's own gateway of JSON. */
  async function ask(path: string, body: object): Promise<void> {
    const answer = await fetch(new URL(`/v3/${path}`, member.url), { method: "POST", body: JSON.stringify(body) });
    expect(answer.status, await answer.text()).toBe(200);
  }

  const put = (key: string) => ({ success: [{ put: { key, value: Buffer.from("v") } }] });
  const { signal } = new AbortController();

  it("does what the user may do", async () => {
    const client = open("davit", "a password");
    await client.txn(put("davit/1"));
    expect((await client.range({ key: "davit/1" })).keys).toHaveLength(1);
    await expect(client.txn(put("other"))).rejects.toMatchObject({ reason: "denied", mayBeDone: false });
    await expect(client.watch({ key: "other" }, { signal }).next()).rejects.toMatchObject({ reason: "denied" });
  });

  it("goes on when the token has expired, and when etcd has lost all tokens", async () => {
    const client = open("davit", "a password");
    await client.txn(put("davit/2"));
    const watch = client.watch({ key: "davit/", end: "davit0" }, { signal });
    await watch.next();
    // etcd looks for expired tokens every second.
    await systemClock.sleep(3_000);
    await client.txn(put("davit/2"));
    expect((await watch.next()).value).toMatchObject({ events: [{ key: { key: "davit/2", version: 2 } }] });
    await member.end();
    await expect(watch.next()).rejects.toMatchObject({ reason: "unavailable" });
    await member.start();
    const again = client.watch({ key: "davit/", end: "davit0" }, { signal });
    await again.next();
    await Promise.all(Array.from({ length: 20 }, () => client.txn(put("davit/3"))));
    expect((await again.next()).value).toMatchObject({ events: [{ key: { key: "davit/3" } }] });
    await again.return();
    const lease = await client.leaseGrant(60);
    expect(await client.leaseRenew(lease.id)).toMatchObject({ ttlSeconds: 60 });
  });

  it("names a wrong password and a missing user, without the password", async () => {
    const wrong = open("davit", "wrong password").range({ key: "davit/1" });
    await expect(wrong).rejects.toMatchObject({ reason: "denied", mayBeDone: false });
    await expect(wrong).rejects.toThrow(/^etcd at \S+: it refuses the user name or the password$/);
    const nobody = EtcdClient.open({ endpoints: members.urls, clock: systemClock, log: silentLog, random: () => 0 });
    clients.push(nobody);
    await expect(nobody.range({ key: "davit/1" })).rejects.toThrow("it requires a user name and a password");
  });
});
