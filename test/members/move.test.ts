/** Stores that move from a directory to etcd and back: for clients they are the same store. */

import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { Submission } from "../../src/store/command/command.ts";
import { WalError } from "../../src/store/core/log-port.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { Layout } from "../../src/store/etcd/layout.ts";
import { DirectoryPlace } from "../../src/store/move/directory-place.ts";
import { moveStore, type OldPlace } from "../../src/store/move/places.ts";
import { PrefixPlace } from "../../src/store/move/prefix-place.ts";
import type { Store } from "../../src/store/store.ts";
import { anySubmission } from "../helpers/any-command.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { type FaultFiles, seededPick } from "../helpers/fault-files.ts";
import { missing } from "../helpers/requirements.ts";
import { dataDirectory, memoryFiles, openStore, silentLog } from "../helpers/test-store.ts";
import { leaderOf, openStoreMember, type StoreMember, set } from "./members.ts";

const lock = () => ({ isHeld: () => true, release() {} });
const pick = seededPick(5);
const random = (bytes: number) => Uint8Array.from({ length: bytes }, () => pick(256));
const agelessRoot = "/davit/tombstones";

async function submitAll(store: Store, commands: readonly Submission[]): Promise<void> {
  for (const command of commands) {
    await store.submit(command).catch((error: unknown) => expect(error).toBeInstanceOf(StoreError));
  }
}

/** What clients see, but for the raft index and term, which may grow. */
function seenOf(store: Store) {
  const nodes = [...store.dump()].map((node) => JSON.stringify(node)).toSorted();
  return { nodes, events: store.events, index: store.indexes.storeIndex, run: store.run, bytes: store.bytes };
}

function hasTtl(command: Submission): boolean {
  return command.kind === "batch" ? command.commands.some(hasTtl) : "ttlSeconds" in command;
}

describe.skipIf(missing("etcd"))("a store that moves", () => {
  let etcd: EtcdMembers;
  let client: EtcdClient;
  let places = 0;
  const prefix = () => `/davit/${places}/`;
  const newPrefix = () => new PrefixPlace({ client, clock: systemClock, prefix: prefix(), doing: "Moving to" });
  const oldPrefix = () => new PrefixPlace({ client, clock: systemClock, prefix: prefix(), doing: "Moving" });
  const member = (name = "m0") => openStoreMember(name, { endpoints: etcd.urls, prefix: prefix(), agelessRoot });

  beforeAll(async () => {
    etcd = await startEtcdV3();
    client = EtcdClient.open({ endpoints: etcd.urls, clock: systemClock, log: silentLog, random: () => 0 });
  });
  afterAll(async () => {
    client.close();
    await etcd.stop();
  });

  const oldDirectory = (files: FaultFiles) =>
    new DirectoryPlace({ files, directory: dataDirectory, lock, random, doing: "Moving" });
  const newDirectory = (files: FaultFiles) =>
    new DirectoryPlace({ files, directory: dataDirectory, lock, random, doing: "Moving to" });

  async function toEtcd(from: OldPlace) {
    places += 1;
    return await moveStore({ from, to: newPrefix(), toName: "etcd", agelessRoot, nowMs: 0 });
  }

  async function toDirectory(): Promise<FaultFiles> {
    const files = memoryFiles();
    await moveStore({ from: oldPrefix(), to: newDirectory(files), toName: "/data", agelessRoot, nowMs: 0 });
    return files;
  }

  /** A directory with the store that these commands make. */
  async function directoryAfter(commands: readonly Submission[], clock = new FakeClock()) {
    const files = memoryFiles();
    const store = await openStore(files, { clock });
    await submitAll(store, commands);
    const [seen, { clusterId }] = [seenOf(store), store.identity];
    await store.stop();
    return { files, seen, clusterId, indexes: store.indexes };
  }

  it("is the same for clients: to etcd, and back", { timeout: 120_000 }, async () => {
    const run = async (commands: readonly Submission[]) => {
      // Keys that end would end at different times.
      const lasting = commands.filter((command) => !hasTtl(command));
      const { files, seen, clusterId, indexes } = await directoryAfter(lasting);
      await toEtcd(oldDirectory(files));
      const first = await member();
      await leaderOf([first]);
      // The record that begins the leader's term carries its run.
      expect(seenOf(first.store)).toEqual({ ...seen, run: first.store.identity.run });
      expect(first.store.identity.clusterId).toBe(clusterId);
      expect(first.store.indexes.raftIndex).toBeGreaterThanOrEqual(indexes.raftIndex);
      expect(first.store.indexes.raftTerm).toBeGreaterThan(indexes.raftTerm);
      await submitAll(first.store, lasting.slice(0, 10));
      const [later, after] = [seenOf(first.store), first.store.indexes];
      await first.stop();
      const back = await openStore(await toDirectory());
      expect(seenOf(back)).toEqual(later);
      expect(back.identity.clusterId).toBe(clusterId);
      expect(back.indexes.raftIndex).toBeGreaterThanOrEqual(after.raftIndex);
      expect(back.indexes.raftTerm).toBeGreaterThan(after.raftTerm);
      await back.stop();
    };
    await fc.assert(fc.asyncProperty(fc.array(anySubmission, { maxLength: 60 }), run), { numRuns: 15 });
  });

  it("keeps every watch: for events that were, and for the next one", async () => {
    const { files } = await directoryAfter([set("/a", "1"), set("/a", "2"), set("/a", "3")]);
    await toEtcd(oldDirectory(files));
    const { store, stop } = await member();
    const seen: string[] = [];
    const { promise: both, resolve } = Promise.withResolvers<void>();
    for (const waitIndex of [2, 4]) {
      const event = ({ node }: { readonly node: { readonly value?: string } }) => {
        seen.push(`${waitIndex}: ${node.value}`);
        if (seen.length === 2) resolve();
        return true;
      };
      store.watch({ path: storePath("/a"), waitIndex }, { event, closed() {} }).resume();
    }
    await store.submit(set("/a", "4"));
    await both;
    expect(seen).toEqual(["2: 2", "4: 4"]);
    await stop();
  });

  it("leaves keys the time that they had, at the place before", async () => {
    const clock = new FakeClock();
    const files = memoryFiles();
    const source = await openStore(files, { clock });
    await source.submit(set("/long", "x", 1_000));
    await clock.advance(400_000);
    await source.submit(set("/short", "x", 1));
    await source.stop();
    await toEtcd(oldDirectory(files));
    const first = await member();
    await leaderOf([first]);
    const { ttlSeconds = 0 } = first.store.get(storePath("/long")).node;
    expect(ttlSeconds).toBeGreaterThan(590);
    expect(ttlSeconds).toBeLessThanOrEqual(600);
    await expect.poll(() => first.store.events.at(-1)?.action, { timeout: 10_000 }).toBe("expire");
    await first.stop();
    const later = new FakeClock();
    const back = await openStore(await toDirectory(), { clock: later });
    expect(back.get(storePath("/long")).node.ttlSeconds).toBeGreaterThan(580);
    await back.stop();
  });

  it("has its records of several epochs, and large ones", { timeout: 60_000 }, async () => {
    const { files } = await directoryAfter([set("/a", "1")]);
    await toEtcd(oldDirectory(files));
    const options = { endpoints: etcd.urls, prefix: prefix(), snapshotInterval: { records: 50, bytes: 100_000_000 } };
    const first = await openStoreMember("m0", options);
    await leaderOf([first]);
    for (let number = 0; number < 180; number++) await first.store.submit(set(`/k${number % 9}`, `${number}`));
    await first.store.submit(set("/large", "x".repeat(3_000_000)));
    const seen = seenOf(first.store);
    await first.stop();
    const back = await openStore(await toDirectory());
    expect(seenOf(back)).toEqual(seen);
    await back.stop();
  });

  describe("is refused", () => {
    it("while a davit uses the prefix", async () => {
      places += 1;
      const first = await member();
      await leaderOf([first]);
      await expect(toDirectory()).rejects.toThrow(
        /^Locking the log in etcd: "m0" uses it; stop every davit that uses this prefix/,
      );
      await first.store.submit(set("/a", "1"));
      await first.stop();
    });

    it("to a prefix with a store, and leaves the directory as it was", async () => {
      const { files } = await directoryAfter([set("/a", "1")]);
      await toEtcd(oldDirectory(files));
      const again = await directoryAfter([set("/b", "1")]);
      const names = await again.files.list(dataDirectory);
      const moving = moveStore({
        from: oldDirectory(again.files),
        to: newPrefix(),
        toName: "etcd",
        agelessRoot,
        nowMs: 0,
      });
      await expect(moving).rejects.toThrow(
        `Moving to "${prefix()}" in etcd: it is not empty, "${prefix()}epoch" is in it; give another --store-etcd-prefix,`,
      );
      expect(await again.files.list(dataDirectory)).toEqual(names);
    });

    it("to a prefix with anything else in it", async () => {
      places += 1;
      await client.txn({ success: [{ put: { key: `${prefix()}z`, value: "of somebody" } }] });
      const { files } = await directoryAfter([set("/a", "1")]);
      const moving = moveStore({ from: oldDirectory(files), to: newPrefix(), toName: "e", agelessRoot, nowMs: 0 });
      await expect(moving).rejects.toThrow(`"${prefix()}z" is in it`);
    });

    it("from a place without a store", async () => {
      await expect(toEtcd(oldDirectory(memoryFiles()))).rejects.toThrow("no store is in it");
      await expect(toDirectory()).rejects.toThrow("no store is below this prefix");
    });
  });

  it("cannot be started where it was, until somebody removes the mark", async () => {
    const { files, seen } = await directoryAfter([set("/a", "1")]);
    await toEtcd(oldDirectory(files));
    const refusal = `Opening "/data": davit migrate-store moved its store to etcd: start davit on that one;`;
    await expect(openStore(files)).rejects.toThrow(refusal);
    await expect(toEtcd(oldDirectory(files))).rejects.toThrow(refusal);
    await files.remove(`${dataDirectory}/moved`);
    const store = await openStore(files);
    expect(seenOf(store)).toEqual(seen);
    await store.stop();

    places -= 1;
    await toDirectory();
    await expect(member()).rejects.toThrow(
      `Opening "${prefix()}" in etcd: davit migrate-store moved its store to /data: start davit on that one;`,
    );
    await client.deleteRange({ key: `${prefix()}moved` });
    const first = await member();
    expect(seenOf(first.store)).toEqual(seen);
    await first.stop();
  });

  /** A member with a key /a that cannot reach etcd any more, and whose lease has ended. */
  async function lostMember(): Promise<StoreMember> {
    places += 1;
    const away = await member();
    await leaderOf([away]);
    await away.store.submit(set("/a", "1"));
    for (const proxy of away.proxies) proxy.cut();
    const { membership } = new Layout(prefix());
    await expect.poll(async () => (await client.range(membership)).keys, { timeout: 20_000 }).toEqual([]);
    return away;
  }

  it("takes no write of a davit that etcd had lost meanwhile", { timeout: 30_000 }, async () => {
    const away = await lostMember();
    await toDirectory();
    const losing = away.log.next("log is lost");
    for (const proxy of away.proxies) proxy.mend();
    await losing;
    expect(away.store.trouble).toContain("davit migrate-store moved its store to /data");
    await expect(away.store.submit(set("/a", "2"))).rejects.toMatchObject({ refusal: "logFailed" });
    await away.stop();
  });

  it("gives no quorum read to a davit that etcd had lost meanwhile", { timeout: 30_000 }, async () => {
    const away = await lostMember();
    const back = await openStore(await toDirectory());
    await back.submit(set("/a", "2"));
    await back.stop();
    // From the first connection on, before this davit finds out by a write.
    const reading = away.store.catchUp();
    for (const proxy of away.proxies) proxy.mend();
    await expect(reading).rejects.toThrow("davit migrate-store moved its store to /data");
    expect(away.store.trouble).toContain("davit migrate-store moved its store to /data");
    await away.stop();
  });

  describe("and is interrupted", () => {
    const large = Array.from({ length: 40 }, (_, number) => set(`/k${number}`, "x".repeat(50_000)));

    it("while it goes to etcd, leaves what looks empty, and the next run succeeds", { timeout: 60_000 }, async () => {
      const { files, seen } = await directoryAfter(large);
      places += 1;
      const image = await oldDirectory(files).read(agelessRoot);
      const cut = async function* () {
        yield new Uint8Array(500_000);
        throw new Error("the process ends");
      };
      const begin = newPrefix().begin({ ...image, atMs: 0, pieces: cut() });
      await expect(begin).rejects.toThrow("the process ends");
      const left = await client.range({ key: prefix(), end: `${prefix()}~`, keysOnly: true });
      expect(left.keys.length).toBeGreaterThan(2);
      places -= 1;
      await toEtcd(oldDirectory(files));
      const first = await member();
      expect(seenOf(first.store)).toEqual(seen);
      await first.stop();
    });

    it("takes the mark back when the new place fails at its end", async () => {
      const { files } = await directoryAfter([set("/a", "1")]);
      const to = {
        refuseUnlessEmpty: () => Promise.resolve(),
        begin: async ({ pieces }: { readonly pieces: AsyncIterable<Uint8Array> }) => {
          for await (const _ of pieces);
          await expect(openStore(files)).rejects.toThrow("moved its store to there");
          throw new Error("the last write fails");
        },
      };
      const moving = moveStore({ from: oldDirectory(files), to, toName: "there", agelessRoot, nowMs: 0 });
      await expect(moving).rejects.toThrow("the last write fails");
      const store = await openStore(files);
      expect(store.indexes.storeIndex).toBe(1);
      await store.stop();
    });

    it("keeps the mark when the new place may have the store", async () => {
      const { files } = await directoryAfter([set("/a", "1")]);
      let isBegun = false;
      const to = {
        refuseUnlessEmpty: () => (isBegun ? Promise.reject(new Error("it is not empty")) : Promise.resolve()),
        begin: async ({ pieces }: { readonly pieces: AsyncIterable<Uint8Array> }) => {
          for await (const _ of pieces);
          isBegun = true;
          throw new WalError("readOnly", "no answer in time");
        },
      };
      const moving = moveStore({ from: oldDirectory(files), to, toName: "there", agelessRoot, nowMs: 0 });
      await expect(moving).rejects.toThrow("no answer in time; the new place may have the store");
      await expect(openStore(files)).rejects.toThrow("moved its store to there");
    });

    it("removes no mark of another run", async () => {
      places += 1;
      const first = await member();
      await leaderOf([first]);
      await first.stop();
      const away = oldPrefix();
      await away.read(agelessRoot);
      await away.release();
      await toDirectory();
      await expect(away.mark("elsewhere")).rejects.toThrow("something wrote to it, or etcd was away for too long");
      await away.unmark();
      await expect(member()).rejects.toThrow("davit migrate-store moved its store to /data");
    });

    it("by another run to the same prefix, leaves the first one alone", async () => {
      const { files, seen } = await directoryAfter(large);
      places += 1;
      const image = await oldDirectory(files).read(agelessRoot);
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const { promise: going, resolve: goOn } = Promise.withResolvers<void>();
      const { state } = image.machine.freeze();
      const pieces = async function* () {
        const { encodeState } = await import("../../src/store/snapshot/snapshot.ts");
        begin();
        await going;
        yield* encodeState(state);
      };
      const first = newPrefix().begin({ ...image, atMs: 0, pieces: pieces() });
      await begun;
      const second = newPrefix().begin({ ...image, atMs: 0, pieces: pieces() });
      await expect(second).rejects.toThrow('"davit migrate-store or restore" uses it');
      goOn();
      await first;
      const opened: StoreMember = await member();
      expect(seenOf(opened.store)).toEqual(seen);
      await opened.stop();
    });
  });
});
