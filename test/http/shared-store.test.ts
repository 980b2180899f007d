/** What the key API answers over a store with several members, which `membership` describes to it. */

import type { Agent } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WalError } from "../../src/store/core/log-port.ts";
import { storePath } from "../../src/store/core/node.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { type DavitKeys, startDavitKeys } from "../helpers/keys-servers.ts";
import { agentFor, sendRaw } from "../helpers/raw-request.ts";
import { type FakeMembership, openSharedStore, type SharedStore } from "../helpers/shared-store.ts";

let clock: FakeClock;
let shared: SharedStore;
let membership: FakeMembership;
let keys: DavitKeys;
let agent: Agent;

beforeEach(async () => {
  clock = new FakeClock();
  shared = await openSharedStore();
  ({ membership } = shared);
  keys = await startDavitKeys({ store: shared.store, clock });
  agent = agentFor();
});
afterEach(async () => {
  agent.destroy();
  await keys.stop();
  await shared.store.stop();
});

const begin = (method: string, target: string) => sendRaw({ port: keys.port, agent, method, target });
const answer = async (method: string, target: string) => (await begin(method, target)).whole();
const get = (target: string) => answer("GET", target);
const urlOf = (id: string) => `http://davit-${id}.example:2379`;
const shown = (id: string) => ({ id, name: `davit-${id}`, peerURLs: [], clientURLs: [urlOf(id)] });

describe("the members", () => {
  it("are listed by id as a number, whichever member answers", async () => {
    expect(JSON.parse((await get("/v2/members")).body)).toEqual({ members: ["2", "a", "10"].map(shown) });
    expect((await get("/v2/machines")).body).toBe([urlOf("10"), urlOf("2"), urlOf("a")].join(", "));
    expect(JSON.parse((await get("/v2/members/leader")).body)).toEqual(shown("10"));
  });

  it("have no leader during an election, nor if it is not known where clients reach it", async () => {
    membership.leaderId = undefined;
    expect(await get("/v2/members/leader")).toMatchObject({ status: 503, body: '{"message":"During election"}' });
    membership.leaderId = "ff";
    expect(await get("/v2/members/leader")).toMatchObject({ status: 503 });
  });
});

describe("the statistics", () => {
  beforeEach(async () => {
    membership.counts = { sentBatches: 3, receivedBatches: 5, reports: new Map([["2", 7]]) };
    membership.leaderSinceMs = 4_000;
    await clock.advance(10_500);
  });

  it("of a follower say whom it follows and since when", async () => {
    expect(JSON.parse((await get("/v2/stats/self")).body)).toEqual({
      name: "davit-2",
      id: "2",
      state: "StateFollower",
      startTime: "2026-01-01T00:00:00Z",
      leaderInfo: { leader: "10", uptime: "6.5s", startTime: "2026-01-01T00:00:04Z" },
      recvAppendRequestCnt: 5,
      sendAppendRequestCnt: 3,
    });
    const refused = { status: 403, body: '{"message":"not current leader"}' };
    expect(await get("/v2/stats/leader")).toMatchObject(refused);
  });

  it("of the leader have its followers", async () => {
    membership.isLeader = true;
    membership.leaderId = "2";
    membership.counts = { sentBatches: 3, receivedBatches: 5, reports: new Map([["a", 7]]) };
    expect(JSON.parse((await get("/v2/stats/self")).body)).toMatchObject({
      state: "StateLeader",
      leaderInfo: { leader: "2" },
    });
    const latency = { current: 0, average: 0, standardDeviation: 0, minimum: 0, maximum: 0 };
    expect(JSON.parse((await get("/v2/stats/leader")).body)).toEqual({
      leader: "2",
      followers: { a: { latency, counts: { fail: 0, success: 7 } }, 10: { latency, counts: { fail: 0, success: 0 } } },
    });
  });

  it("name no leader while there is none", async () => {
    membership.leaderId = undefined;
    expect(JSON.parse((await get("/v2/stats/self")).body)).toMatchObject({ leaderInfo: { leader: "" } });
  });
});

describe("a quorum read", () => {
  it("has what others wrote before it, which this member receives first", async () => {
    const caughtUp = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    membership.barrier = () => {
      asked.resolve();
      return caughtUp.promise;
    };
    expect(await get("/v2/keys/k")).toMatchObject({ status: 404 });
    const reading = get("/v2/keys/k?quorum=true&wait=true");
    await asked.promise;
    await shared.store.submit({ kind: "set", path: storePath("/k"), value: "new" });
    caughtUp.resolve();
    expect(await reading).toMatchObject({ status: 200, body: expect.stringContaining('"value":"new"') });
  });

  it("is error 300 if this member cannot find out what others wrote; other reads go on", async () => {
    membership.barrier = () => Promise.reject(new WalError("readOnly", "etcd does not answer"));
    await shared.store.submit({ kind: "set", path: storePath("/k"), value: "v" });
    expect(await get("/v2/keys/k?quorum=true")).toMatchObject({
      status: 500,
      body: '{"errorCode":300,"message":"Raft Internal Error","cause":"etcd does not answer","index":0}\n',
    });
    expect(await get("/v2/keys/none?quorum=true")).toMatchObject({ status: 500 });
    expect(await get("/v2/keys/k")).toMatchObject({ status: 200 });
    expect(await answer("HEAD", "/v2/keys/k?quorum=true")).toMatchObject({ status: 200 });
  });

  it("that is malformed waits for nothing", async () => {
    membership.barrier = () => new Promise(() => {});
    expect(await get("/v2/keys/k?quorum=true&recursive=x")).toMatchObject({ status: 400 });
  });
});
