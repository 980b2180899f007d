/** Three members of a store, as clients of the key API and followers see them. */

import type { Agent } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { storePath } from "../../src/store/core/node.ts";
import { type DavitMembers, startDavitMembers, startMember } from "../helpers/davit-members.ts";
import { startEtcdProxy } from "../helpers/etcd-proxy.ts";
import { follow, startFollow } from "../helpers/follow-server.ts";
import type { DavitKeys } from "../helpers/keys-servers.ts";
import { agentFor, sendRaw } from "../helpers/raw-request.ts";
import { missing } from "../helpers/requirements.ts";

const soon = { timeout: 15_000 };
const limitMs = 60_000;

let members: DavitMembers;
let agent: Agent;

const at = (number: number): DavitKeys => {
  const member = members.all[number];
  if (member === undefined) throw new Error("There are three members");
  return member;
};
const ask = async (number: number, method: string, target: string) =>
  (await sendRaw({ port: at(number).port, agent, method, target })).whole();
const get = (number: number, target: string) => ask(number, "GET", target);
/** The same request to each member. */
const getAll = (target: string) => Promise.all(members.all.map((_, number) => get(number, target)));
const nodeIn = ({ body }: { readonly body: string }): { value: string; modifiedIndex: number } => JSON.parse(body).node;

describe.skipIf(missing("etcd"))("three members", () => {
  beforeAll(async () => {
    members = await startDavitMembers();
    agent = agentFor();
  });
  afterAll(async () => {
    agent?.destroy();
    await members?.stop();
  });

  it("list each other and the leader in the same words", async () => {
    const listed = async () => (await getAll("/v2/members")).map(({ body }) => JSON.parse(body).members.length);
    await expect.poll(listed, soon).toEqual([3, 3, 3]);
    for (const target of ["/v2/members", "/v2/members/leader", "/v2/machines"]) {
      expect(new Set((await getAll(target)).map(({ body }) => body)).size).toBe(1);
    }
    expect((await get(1, "/v2/machines")).body).toBe(
      members.all
        .map(({ port }) => `http://127.0.0.1:${port}`)
        .toSorted()
        .join(", "),
    );
    expect(JSON.parse((await get(2, "/v2/members/leader")).body)).toMatchObject({ name: "davit-0" });
  });

  it("say who leads and who follows, and what they wrote", async () => {
    await ask(1, "PUT", "/v2/keys/counted?value=x");
    await getAll("/v2/keys/counted?quorum=true");
    const [leader, writer] = (await getAll("/v2/stats/self")).map(({ body }) => JSON.parse(body));
    expect(leader).toMatchObject({ state: "StateLeader", leaderInfo: { leader: leader.id } });
    expect(writer).toMatchObject({ state: "StateFollower", leaderInfo: { leader: leader.id } });
    expect(leader.recvAppendRequestCnt).toBeGreaterThan(0);
    expect(writer.sendAppendRequestCnt).toBeGreaterThan(0);
    const [ofLeader, ...others] = await getAll("/v2/stats/leader");
    expect(Object.keys(JSON.parse(ofLeader?.body ?? "").followers)).toHaveLength(2);
    for (const { status, body } of others) {
      expect([status, body]).toEqual([403, '{"message":"not current leader"}']);
    }
  });

  it("take writes alike; a quorum read at any of them has what was written before it at another", async () => {
    for (let number = 0; number < 30; number += 1) {
      const written = nodeIn(await ask(number % 3, "PUT", `/v2/keys/quorum?value=${number}`));
      expect(nodeIn(await get((number + 1) % 3, "/v2/keys/quorum?quorum=true"))).toEqual(written);
    }
  });

  it("have the same indexes, term and cluster", async () => {
    const names = ["x-store-index", "x-etcd-index", "x-raft-index", "x-raft-term", "x-store-cluster-id"];
    const heads = (await getAll("/v2/keys/quorum?quorum=true")).map(({ headers }) =>
      names.map((name) => headers.get(name)),
    );
    expect(heads[0]).not.toContain(undefined);
    expect(heads[1]).toEqual(heads[0]);
    expect(heads[2]).toEqual(heads[0]);
  });

  it("let a watch go on at another member, with its next index", async () => {
    let next = nodeIn(await ask(0, "PUT", "/v2/keys/watched/begin")).modifiedIndex + 1;
    const writing = (async () => {
      for (let number = 0; number < 30; number += 1) {
        await ask(number % 3, "PUT", `/v2/keys/watched/k?value=${number}`);
        await ask(number % 3, "PUT", "/v2/keys/other?value=x");
      }
    })();
    for (let number = 0; number < 30; number += 1) {
      const seen = await get(number % 3, `/v2/keys/watched?recursive=true&wait=true&waitIndex=${next}`);
      expect(nodeIn(seen).value).toBe(String(number));
      next = nodeIn(seen).modifiedIndex + 1;
    }
    await writing;
  });

  it("give no follower an older state than it has from another member", { timeout: limitMs }, async () => {
    const proxy = await startEtcdProxy(members.etcd.urls[0] ?? new URL("http://unknown"));
    const late = await startMember(3, [proxy.url]);
    const [server, lateServer] = [await startFollow(at(0).store), await startFollow(late.store)];
    const set = (value: string) => at(0).store.submit({ kind: "set", path: storePath("/davit/a"), value });
    await set("before");
    await late.store.catchUp();
    proxy.pause();
    await set("after");
    const first = await follow(server);
    const commit = (await first.until("commit")).at(-1);
    first.stop();
    const { clusterId: cluster } = late.store.identity;
    const place = commit?.kind === "commit" ? { ...commit, cluster } : undefined;
    // Without a copy, the follower has nothing to lose.
    const fresh = await follow(lateServer);
    expect(await fresh.until("commit")).toMatchObject([{ kind: "dump" }, { text: "before" }, { kind: "commit" }]);
    fresh.stop();
    const asked = Promise.withResolvers<void>();
    const catchUp = late.store.catchUp.bind(late.store);
    late.store.catchUp = () => {
      asked.resolve();
      return catchUp();
    };
    const waiting = follow(lateServer, place);
    // Not before this member has the request, or it would have caught up by then.
    await Promise.race([asked.promise, waiting]);
    proxy.resume();
    const second = await waiting;
    expect(second.status).toBe(200);
    expect(await second.until("heartbeat")).not.toContainEqual(expect.objectContaining({ text: "before" }));
    second.stop();
    await lateServer.stop();
    await server.stop();
    await late.stop();
    await proxy.stop();
  });

  it("refuse writes and quorum reads without etcd, and go on reading", { timeout: limitMs }, async () => {
    await ask(0, "PUT", "/v2/keys/kept?value=x");
    await getAll("/v2/keys/kept?quorum=true");
    await members.etcd.all[0]?.kill();
    const [written, read] = await Promise.all([
      ask(1, "PUT", "/v2/keys/kept?value=y"),
      get(2, "/v2/keys/kept?quorum=true"),
    ]);
    for (const { status, body } of [written, read]) {
      expect([status, JSON.parse(body)]).toMatchObject([500, { errorCode: 300, cause: expect.stringMatching(/etcd/) }]);
    }
    expect(nodeIn(await get(1, "/v2/keys/kept"))).toMatchObject({ value: "x" });
    expect(await get(1, "/health")).toMatchObject({ status: 503 });
    await members.etcd.all[0]?.start();
    await expect.poll(async () => (await ask(1, "PUT", "/v2/keys/kept?value=z")).status, soon).toBe(200);
    expect(nodeIn(await get(2, "/v2/keys/kept?quorum=true"))).toMatchObject({ value: "z" });
  });
});
