/** What goes wrong between a davit and etcd: answers and events that are lost, and leaders that are none any more. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { EtcdClient, EtcdError, type EtcdWatchPart } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { type Pick, seededPick } from "../helpers/fault-files.ts";
import { missing } from "../helpers/requirements.ts";
import { collecting, openEtcdLog } from "./drivers.ts";
import { leaderOf, openStoreMember, type StoreMember, set, settled, stateOf } from "./members.ts";

const unavailable = { reason: "unavailable", mayBeDone: false, endpoint: "http://etcd.test" } as const;
const seed = Number(process.env.DAVIT_TEST_SEED ?? Date.now() % 1_000_000);

describe.skipIf(missing("etcd"))(`stores on one etcd (seed ${seed})`, () => {
  let etcd: EtcdMembers;
  let prefix = "/davit/0/";
  let clusters = 0;
  let pick: Pick;
  let stops: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    etcd = await startEtcdV3();
  });
  afterAll(() => etcd.stop());
  beforeEach(() => {
    clusters += 1;
    prefix = `/davit/${clusters}/`;
    pick = seededPick(seed);
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await Promise.all(stops.map((stop) => stop()));
    stops = [];
  });

  async function openThree(): Promise<readonly StoreMember[]> {
    const opened: StoreMember[] = [];
    for (const name of ["a", "b", "c"]) {
      const member = await openStoreMember(name, { endpoints: etcd.urls, prefix });
      stops.push(() => member.stop());
      opened.push(member);
    }
    await leaderOf(opened);
    return opened;
  }

  async function expectSameState(members: readonly StoreMember[]): Promise<void> {
    const [first = "", ...others] = (await settled(members)).map((store) => stateOf(store));
    for (const other of others) expect(other).toBe(first);
  }

  /** Increments a counter, unless another member does so first. */
  async function increment({ store }: StoreMember): Promise<boolean> {
    const path = storePath("/counter");
    const { value = "" } = store.get(path).node;
    try {
      const expected = { value };
      await store.submit({ kind: "compareAndSwap", path, value: String(Number(value) + 1), expected });
      return true;
    } catch (error) {
      if (!(error instanceof StoreError) || error.refusal !== "compareFailed") throw error;
      await store.membership.barrier();
      return false;
    }
  }

  it("writes once what etcd has carried out, whether its answer comes or not", async () => {
    const members = await openThree();
    await members[0]?.store.submit(set("/counter", "0"));
    await settled(members);
    let lost = 0;
    const isLost = () => {
      const isOne = pick(100) < 4;
      if (isOne) lost += 1;
      return isOne;
    };
    for (const { proxies } of members) for (const proxy of proxies) proxy.loseAnswers(isLost);
    const results = await Promise.all(
      members.map(async (member, at) => {
        let increments = 0;
        const paths: string[] = [];
        while (increments < 20) {
          if (await increment(member)) increments += 1;
          const queue = storePath("/queue");
          const { event } = await member.store.submit({ kind: "createInOrder", path: queue, value: String(at) });
          paths.push(event.node.path);
        }
        return paths;
      }),
    );
    for (const { proxies } of members) for (const proxy of proxies) proxy.loseAnswers(() => false);
    expect(lost).toBeGreaterThan(0);
    await expectSameState(members);
    for (const { store } of members) {
      expect(store.get(storePath("/counter")).node.value).toBe("60");
      const queue = [...store.dump()].filter(({ path }) => path.startsWith("/queue/")).map(({ path }) => path);
      expect(queue.toSorted()).toEqual(results.flat().toSorted());
    }
  });

  /** Drops events of the log from watches. A proxy cannot do that: the events of a stream are compressed together. */
  function dropEvents(isDropped: () => boolean): void {
    const { watch } = EtcdClient.prototype;
    vi.spyOn(EtcdClient.prototype, "watch").mockImplementation(async function* (this: EtcdClient, ...args) {
      for await (const part of watch.apply(this, args)) yield dropped(part, isDropped);
    });
  }

  function dropped(part: EtcdWatchPart, isDropped: () => boolean): EtcdWatchPart {
    return { ...part, events: part.events.filter(({ key: { key } }) => !key.includes("/l/") || !isDropped()) };
  }

  it("misses nothing when a watch loses events", async () => {
    let lost = 0;
    dropEvents(() => {
      const isOne = pick(10) === 0;
      if (isOne) lost += 1;
      return isOne;
    });
    const members = await openThree();
    for (let round = 0; round < 5; round++) {
      await Promise.all(
        members.flatMap(({ store }, at) => [1, 2, 3, 4].map((n) => store.submit(set(`/w${at}/${n}`, `${round}`)))),
      );
    }
    await expectSameState(members);
    expect(lost).toBeGreaterThan(0);
  });

  it("ends a quorum read when what was written does not arrive, and reads it when it does", async () => {
    const [reader, writer] = await Promise.all(
      ["a", "b"].map((name) => openStoreMember(name, { endpoints: etcd.urls, prefix, withinMs: 1_000 })),
    );
    for (const member of [reader, writer]) stops.push(() => member?.stop() ?? Promise.resolve());
    let isLost = true;
    dropEvents(() => isLost);
    // The watches that drop events are opened anew.
    for (const proxy of reader?.proxies ?? []) {
      proxy.cut();
      proxy.mend();
    }
    const { range } = EtcdClient.prototype;
    vi.spyOn(EtcdClient.prototype, "range").mockImplementation(async function (this: EtcdClient, ...args) {
      if (isLost && args[0].key.endsWith("/l/")) throw new EtcdError("lost", unavailable);
      return await range.apply(this, args);
    });
    const path = storePath("/a");
    await writer?.store.submit(set("/a", "1"));
    await expect(reader?.store.catchUp()).rejects.toMatchObject({
      refusal: "logFailed",
      causeText: expect.stringMatching(/did not arrive in time; try again/),
    });
    expect(reader?.store.getFile(path)).toBeUndefined();
    isLost = false;
    await reader?.store.catchUp();
    expect(reader?.store.getFile(path)).toMatchObject({ value: "1" });
  });

  it("goes on when the answer that refuses a batch of an earlier epoch comes late", async () => {
    const { log, delivered, leads } = await collecting(await openEtcdLog({ endpoints: etcd.urls, prefix }));
    stops.push(() => log.stop());
    await leads;
    await log.propose(Buffer.from("a"));
    await log.saveSnapshot(1, [Buffer.from("state")]);
    const { promise: first, resolve: isDelivered } = Promise.withResolvers<void>();
    const { txn } = EtcdClient.prototype;
    let isHeld = false;
    vi.spyOn(EtcdClient.prototype, "txn").mockImplementation(async function (this: EtcdClient, ...args) {
      const answer = await txn.apply(this, args);
      // The third batch of this run.
      if (answer.succeeded || !JSON.stringify(args[0].success).includes('/3"')) return answer;
      isHeld = true;
      await first;
      return answer;
    });
    // Two are sent in the epoch before the snapshot: a full batch does not wait for the one before it.
    const small = log.propose(Buffer.from("b")).then(() => isDelivered());
    await Promise.all([small, ...["c", "d"].map((text) => log.propose(Buffer.alloc(600_000, text)))]);
    expect(isHeld).toBe(true);
    expect(delivered.map((line) => line.split(":")[1]?.[0])).toEqual(["a", "b", "c", "d"]);
    expect(log.status).toBe("writable");
  });

  it("takes no fenced record of a member that leads no more, and does not know it", async () => {
    let isFrozen = false;
    // As a process that stood still: its clock, its timers and what it watches come later, its requests at once.
    const { promise: thawed, resolve: thaw } = Promise.withResolvers<void>();
    const clock = {
      ...systemClock,
      monotonicMs: () => (isFrozen ? frozenAtMs : systemClock.monotonicMs()),
      sleep: async (durationMs: number, signal?: AbortSignal) => {
        await systemClock.sleep(durationMs, signal);
        if (isFrozen) await thawed;
      },
    };
    let frozenAtMs = 0;
    const { watch } = EtcdClient.prototype;
    const spy = vi.spyOn(EtcdClient.prototype, "watch").mockImplementation(async function* (this: EtcdClient, ...args) {
      for await (const part of watch.apply(this, args)) {
        if (isFrozen && args[0].key.endsWith("/leader")) await thawed;
        yield part;
      }
    });
    const options = { endpoints: etcd.urls, prefix, leaseSeconds: 2 };
    const { promise: deposed, resolve: isDeposed } = Promise.withResolvers<void>();
    const first = await collecting(await openEtcdLog({ ...options, clock }, 1), { deposed: isDeposed });
    stops.push(() => {
      isFrozen = false;
      thaw();
      return first.log.stop();
    });
    await first.leads;
    await first.log.propose(Buffer.from("term 1"), { fenced: true, beginsTerm: true });
    await first.log.propose(Buffer.from("expiry 1"), { fenced: true });
    spy.mockRestore();
    frozenAtMs = systemClock.monotonicMs();
    isFrozen = true;

    const second = await collecting(await openEtcdLog(options, 2));
    stops.push(() => second.log.stop());
    await second.leads;
    await second.log.propose(Buffer.from("term 2"), { fenced: true, beginsTerm: true });
    expect([first.log.membership.isLeader, second.log.membership.isLeader]).toEqual([true, true]);
    await first.log.membership.barrier();
    const refused = { name: "WalError", reason: "deposed" };
    const late = [
      first.log.propose(Buffer.from("late"), { fenced: true }),
      first.log.propose(Buffer.from("late term"), { fenced: true, beginsTerm: true }),
      first.log.saveSnapshot(3, [Buffer.from("late state")]),
    ];
    await Promise.all(late.map((each) => expect(each).rejects.toMatchObject(refused)));
    await first.log.propose(Buffer.from("plain"));
    await second.log.membership.barrier();
    await second.log.saveSnapshot(4, [Buffer.from("state")]);
    thaw();
    isFrozen = false;
    await deposed;
    await Promise.all([first, second].map(({ log }) => log.membership.barrier()));
    expect(first.delivered).toEqual(["1:term 1:1", "2:expiry 1:1", "3:term 2:2", "4:plain:2"]);
    expect(second.delivered).toEqual(first.delivered);
    const third = await openEtcdLog(options, 3);
    expect(await third.loadSnapshot()).toMatchObject({ sequence: 4 });
    await third.stop();
  });
});
