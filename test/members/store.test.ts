/** Three stores on one etcd: they are one store, and its leader may change. */

import { describe, expect, it } from "vitest";
import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { SingleCommand } from "../../src/store/command/command.ts";
import { storePath } from "../../src/store/core/node.ts";
import type { Store } from "../../src/store/store.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";
import {
  clockOff,
  eventAt,
  leaderOf,
  membersOnOneEtcd,
  type StoreMember,
  type StoreMemberOptions,
  set,
  settled,
  stateOf,
} from "./members.ts";

const hourMs = 3_600_000;

describe.skipIf(missing("etcd"))("three stores on one etcd", () => {
  const members = membersOnOneEtcd();
  const open = (options: Partial<StoreMemberOptions> = {}) => members.open(`m${members.all.length}`, options);

  async function openThree(options: Partial<StoreMemberOptions> = {}) {
    return [await open(options), await open(options), await open(options)] as const;
  }

  /** Writes through every member at the same time. */
  async function writeAll(writers: readonly StoreMember[], count: number): Promise<void> {
    const writes = writers.flatMap(({ store }, writer) =>
      Array.from({ length: count }, (_, number) => store.submit(set(`/w${writer}/${number % 7}`, `${number}`))),
    );
    await Promise.all(writes);
  }

  async function expectSameState(of: readonly StoreMember[] = members.all): Promise<void> {
    const [first, ...others] = await settled(of);
    for (const other of others) if (first !== undefined) expect(stateOf(other)).toBe(stateOf(first));
  }

  it("has one state at all of them, whoever writes", async () => {
    const three = await openThree();
    await leaderOf(three);
    await writeAll(three, 60);
    await expectSameState();
    expect(three[0].store.indexes.storeIndex).toBe(180);
    // Each member is heard of by a watch of its own, which may be late.
    for (const { store } of three) await expect.poll(() => store.membership.members).toHaveLength(3);
  });

  it("refuses no write while one snapshot follows the other", async () => {
    const three = await openThree({ snapshotInterval: { records: 30, bytes: 1e9 } });
    const leader = await leaderOf(three);
    // One write at a time for each writer, so that batches stay small and many.
    const writers = three.flatMap(({ store }, member) =>
      Array.from({ length: 8 }, async (_, writer) => {
        for (let number = 0; number < 50; number++) await store.submit(set(`/w${member}/${writer}`, `${number}`));
      }),
    );
    await Promise.all(writers);
    expect(leader.log.messages.filter((message) => message === "snapshot saved").length).toBeGreaterThan(2);
    for (const { store } of three) expect(store.trouble).toBeUndefined();
    await expectSameState();
  });

  it.each([true, false])("compacts etcd after a snapshot: %s", async (compact) => {
    const client = EtcdClient.open({
      endpoints: members.endpoints,
      clock: systemClock,
      log: silentLog,
      random: () => 0,
    });
    try {
      const put = { put: { key: "/other", value: Buffer.from("1") } };
      const { header } = await client.txn({ success: [put] });
      await client.txn({ success: [put] });
      const leader = await leaderOf(await openThree({ snapshotInterval: { records: 30, bytes: 1e9 }, compact }));
      for (let snapshot = 0; snapshot < 3; snapshot++) {
        const saved = leader.log.next("snapshot saved");
        await writeAll([leader], 40);
        await saved;
      }
      // davit compacts after it has logged the snapshot.
      await leader.stop();
      const former = client.range({ key: "/other", revision: header.revision });
      await (compact
        ? expect(former).rejects.toMatchObject({ reason: "compacted" })
        : expect(former).resolves.toMatchObject({ keys: [{}] }));
    } finally {
      client.close();
    }
  });

  it("lets a directory of ordered keys be filled through all members", async () => {
    const three = await openThree();
    const writes = three.flatMap(({ store }) =>
      Array.from({ length: 20 }, () =>
        store
          .submit({ kind: "createInOrder", path: storePath("/queue"), value: "x" })
          .then(({ event }) => event.node.path),
      ),
    );
    const paths = await Promise.all(writes);
    expect(new Set(paths).size).toBe(60);
    await expectSameState();
  });

  it("ends a key once, and goes on when the leader stops", async () => {
    const three = await openThree();
    const first = await leaderOf(three);
    const others = three.filter((member) => member !== first);
    const [second, third] = others;
    const ended = three.map(({ store }) => eventAt(store, "/a", "expire"));
    await second?.store.submit(set("/a", "1", 1));
    await Promise.all(ended);
    const terms = three.map(({ store }) => store.indexes.raftTerm);
    expect(terms).toEqual([1, 1, 1]);

    const later = others.map(({ store }) => eventAt(store, "/b", "expire"));
    await third?.store.submit(set("/b", "1", 1));
    members.all = others;
    await first.stop();
    const next = await leaderOf(others);
    expect(next).not.toBe(first);
    await Promise.all(later);
    await expectSameState();
    for (const { store } of others) expect(store.indexes.raftTerm).toBe(2);
  });

  it("goes on when the leader is lost, which then leads no more and catches up", async () => {
    const three = await openThree();
    const first = await leaderOf(three);
    const others = three.filter((member) => member !== first);
    await others[0]?.store.submit(set("/a", "1", 1));
    const ended = others.map(({ store }) => eventAt(store, "/a", "expire"));
    const deposed = first.log.next("leads no more");
    for (const proxy of first.proxies) proxy.cut();
    await leaderOf(others);
    await Promise.all(ended);
    await deposed;
    expect(first.store.membership.isLeader).toBe(false);
    const seen = eventAt(first.store, "/later", "set");
    await others[1]?.store.submit(set("/later", "1"));
    for (const proxy of first.proxies) proxy.mend();
    await seen;
    await expectSameState();
  });

  async function indexOf(command: SingleCommand, { store }: StoreMember): Promise<number> {
    return (await store.submit(command)).event.node.modifiedIndex;
  }

  it("takes writes while no member leads, and those that would find a due key after its end", async () => {
    const leader = await open({ leaseSeconds: 5 });
    await leaderOf(members.all);
    const [second, third] = [await open({ leaseSeconds: 5 }), await open({ leaseSeconds: 5 })];
    const [due, below] = ["/due", "/directory/due"] as const;
    for (const path of [due, below]) await second.store.submit(set(path, "1", 1));
    await settled(members.all);
    for (const proxy of leader.proxies) proxy.cut();
    const ended = [due, below].map((path) => eventAt(third.store, path, "expire"));
    // After a slow write, `extend` lets a key last longer, so the first one may end last.
    for (const { store } of [second, third]) {
      for (const path of [due, below]) await expect.poll(() => store.getFile(storePath(path))).toBeUndefined();
    }
    const held = Promise.all([
      indexOf({ kind: "create", path: storePath(due), value: "2" }, second),
      indexOf({ kind: "create", path: storePath(`${below}/deep`), value: "2" }, third),
      indexOf({ kind: "delete", path: storePath("/directory"), recursive: true }, second),
    ]);
    const free = await Promise.all([
      indexOf(set("/free", "1"), second),
      indexOf({ kind: "createInOrder", path: storePath("/directory"), value: "1" }, third),
    ]);
    const ends = (await Promise.all(ended)).map(({ node }) => node.modifiedIndex);
    expect(Math.max(...free)).toBeLessThan(Math.min(...ends));
    expect(Math.min(...(await held))).toBeGreaterThan(Math.max(...ends));
    for (const proxy of leader.proxies) proxy.mend();
    await expectSameState();
  });

  it("shows no key again that was due before another member led", async () => {
    const leader = await open({ leaseSeconds: 5 });
    await leaderOf(members.all);
    const other = await open({ leaseSeconds: 5 });
    await other.store.submit(set("/due", "1", 1));
    for (const proxy of leader.proxies) proxy.cut();
    await expect.poll(() => other.store.getFile(storePath("/due"))).toBeUndefined();
    const leads = leaderOf([other]);
    const path = storePath("/due");
    const create = other.store.submit({ kind: "create", path, value: "2" });
    await leads;
    expect((await create).event).toMatchObject({ action: "create", node: { value: "2" } });
    expect(other.store.events.map(({ action }) => action)).toEqual(["set", "expire", "create"]);
    for (const proxy of leader.proxies) proxy.mend();
    await expectSameState();
  });

  /** Keys with a ttl of ten minutes that were written a moment ago. */
  function expectLongKeys(store: Store): void {
    for (const at of [0, 1, 2]) {
      const left = store.get(storePath(`/long/${at}`)).node.ttlSeconds ?? 0;
      expect(left).toBeGreaterThan(500);
      expect(left).toBeLessThanOrEqual(600);
    }
  }

  /** A key that each member writes ends. */
  async function expectEnds(of: readonly StoreMember[]): Promise<void> {
    const ended = of.map(({ store }, at) => eventAt(store, `/short/${at}`, "expire"));
    await Promise.all(of.map(({ store }, at) => store.submit(set(`/short/${at}`, "x", 1))));
    await Promise.all(ended);
  }

  it.each([
    { who: "the leader's clock is an hour ahead", offsets: [hourMs, 0, 0] },
    { who: "the leader's clock is an hour behind", offsets: [-hourMs, 0, 0] },
    { who: "the other members' clocks are wrong", offsets: [0, hourMs, -hourMs] },
  ])("ends keys in time when $who", async ({ offsets }) => {
    for (const offset of offsets) {
      await open({ clock: clockOff(offset) });
      await leaderOf(members.all);
    }
    const [first, ...others] = members.all;
    await Promise.all(members.all.map(({ store }, at) => store.submit(set(`/long/${at}`, "x", 600))));
    for (const store of await settled(members.all)) expectLongKeys(store);
    await expectEnds(members.all);

    // Another member leads, with another clock.
    const across = others.map(({ store }) => eventAt(store, "/across", "expire"));
    await first?.store.submit(set("/across", "x", 2));
    members.all = others;
    await first?.stop();
    await leaderOf(others);
    for (const { store } of others) expectLongKeys(store);
    await Promise.all(across);
    await expectEnds(others);
    await expectSameState(others);
  });

  it("has the same state from snapshots, for members that come late", async () => {
    const snapshotInterval = { records: 50, bytes: 1e9 };
    const three = await openThree({ snapshotInterval });
    const leader = await leaderOf(three);
    for (const at of [0, 1, 2]) await leader.store.submit(set(`/long/${at}`, "x", 600));
    for (let round = 0; round < 4; round++) {
      const saved = leader.log.next("snapshot saved");
      await writeAll(three, 60);
      await saved;
    }
    await writeAll(three, 5);
    const late = await open({ snapshotInterval, clock: clockOff(hourMs) });
    expectLongKeys(late.store);
    await expectSameState();
  });

  it("reloads a member that was left behind, for its followers and watchers, too", async () => {
    const snapshotInterval = { records: 50, bytes: 1e9 };
    const three = await openThree({ snapshotInterval });
    const leader = await leaderOf(three);
    const held = three.find((member) => member !== leader);
    if (held === undefined) throw new Error("no member to hold");
    const writers = three.filter((member) => member !== held);
    await writeAll(three, 5);
    await settled(three);
    const files = new Map<string, string>();
    let replacements = 0;
    held.store.follow("/w0", {
      replaced: (all) => {
        replacements += 1;
        files.clear();
        for (const [path, text] of all) files.set(path, text);
      },
      changed: (changes) => {
        for (const { path, text } of changes)
          if (text === undefined) files.delete(path);
          else files.set(path, text);
      },
    });
    const overtaken = new Promise((resolve) => {
      const watch = { path: storePath("/w0/0"), accepts: () => false, stream: true };
      held.store.watch(watch, { event: () => true, closed: resolve }).resume();
    });
    for (const proxy of held.proxies) proxy.cut();
    for (let round = 0; round < 4; round++) {
      const saved = leader.log.next("snapshot saved");
      await writeAll(writers, 60);
      await saved;
    }
    for (const proxy of held.proxies) proxy.mend();
    expect(await overtaken).toBe("overtaken");
    await writeAll(three, 5);
    await expectSameState();
    expect(replacements).toBe(2);
    const expected = [...held.store.dump()].filter(({ path, isDirectory }) => path.startsWith("/w0/") && !isDirectory);
    expect([...files].toSorted()).toEqual(expected.map(({ path, value }) => [path, value]).toSorted());
  });
});
