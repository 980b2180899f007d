import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Command, SingleCommand } from "../../src/store/command/command.ts";
import { decodeRecord, encodeRecord } from "../../src/store/command/command-codec.ts";
import { Expiry } from "../../src/store/command/expiry.ts";
import { type StoreEvent, storePath } from "../../src/store/core/node.ts";
import { StateMachine } from "../../src/store/snapshot/state-machine.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { FaultFiles, seededPick } from "../helpers/fault-files.ts";
import { pathsOf } from "../helpers/listed.ts";
import { memoryFiles, openLog, openStore } from "../helpers/test-store.ts";

const hourMs = 3_600_000;

const set = (path: string, ttlSeconds?: number): SingleCommand => ({
  kind: "set",
  path: storePath(path),
  value: "x",
  ...(ttlSeconds !== undefined && { ttlSeconds }),
});
const setDirectory = (path: string, ttlSeconds: number): SingleCommand => ({
  kind: "set",
  path: storePath(path),
  value: "",
  dir: true,
  ttlSeconds,
});

/** Its sleepers sleep until they are told to stop: nothing is logged in time. */
class SleepyClock extends FakeClock {
  override sleep(_durationMs: number, signal?: AbortSignal): Promise<void> {
    return super.sleep(Number.MAX_SAFE_INTEGER, signal);
  }
}

async function scene(clock = new FakeClock(), files = memoryFiles()) {
  const store = await openStore(files, { clock });
  return { clock, store, events: eventsOf(store) };
}

function eventsOf(store: Store, path = "/"): StoreEvent[] {
  const events: StoreEvent[] = [];
  const options = { path: storePath(path), recursive: true, stream: true };
  store.watch(options, { event: (event) => events.push(event) > 0, closed: () => {} }).resume();
  return events;
}

const shape = ({ action, node }: StoreEvent) => `${node.modifiedIndex} ${action} ${node.path}`;

function isThere(store: Store, path: string): boolean {
  try {
    return store.get(storePath(path)).node.path === path;
  } catch {
    return false;
  }
}

describe("what is due", () => {
  it("is gone at once, with all that is below it, before anything is logged", async () => {
    const { store, clock, events } = await scene(new SleepyClock());
    await store.submit(set("/p/a", 1));
    await store.submit(setDirectory("/p/d", 1));
    await store.submit(set("/p/d/e/f"));
    await store.submit(set("/p/z", 2));
    await clock.advance(999);
    expect(["/p/a", "/p/d", "/p/d/e/f", "/p/z"].map((path) => isThere(store, path))).toEqual([true, true, true, true]);
    await clock.advance(1);
    expect(["/p/a", "/p/d", "/p/d/e/f", "/p/z"].map((path) => isThere(store, path))).toEqual([
      false,
      false,
      false,
      true,
    ]);
    expect(pathsOf(store.list(storePath("/"), { recursive: true, sorted: true }))).toEqual(["/", "/p", "/p/z"]);
    const files: string[] = [];
    store.follow("/p", { replaced: (all) => files.push(...[...all].map(([path]) => path)), changed: () => {} })();
    expect(files).toEqual(["/p/z"]);
    expect(() => store.get(storePath("/p/d/e/f"))).toThrowError(expect.objectContaining({ causeText: "/p/d" }));
    expect(events).toHaveLength(4);
    await store.stop();
  });

  it("is logged before a write that comes later, so that the write finds nothing", async () => {
    const { store, clock, events } = await scene(new SleepyClock());
    await store.submit(set("/a", 1));
    await store.submit(set("/b", 5));
    await clock.advance(1_000);
    await store.submit({ kind: "create", path: storePath("/a"), value: "new" });
    expect(events.map(shape)).toEqual(["1 set /a", "2 set /b", "3 expire /a", "4 create /a"]);
    await store.stop();
  });

  it("ends when it is due, in the order of time, and tells it as v2 clients know it", async () => {
    const { store, clock, events } = await scene();
    await store.submit(set("/late", 3));
    await store.submit(set("/soon", 1));
    await store.submit(set("/tie", 1));
    await clock.advance(1_000);
    expect(events.slice(3).map(shape)).toEqual(["4 expire /soon", "5 expire /tie"]);
    expect(events[3]).toEqual({
      action: "expire",
      node: { path: "/soon", isDirectory: false, createdIndex: 2, modifiedIndex: 4 },
      prevNode: {
        path: "/soon",
        isDirectory: false,
        value: "x",
        expiresAtMs: Date.UTC(2026, 0, 1, 0, 0, 1),
        createdIndex: 2,
        modifiedIndex: 2,
      },
    });
    await clock.advance(1_999);
    expect(events).toHaveLength(5);
    await clock.advance(1);
    expect(events.slice(5).map(shape)).toEqual(["6 expire /late"]);
    expect(store.counts.get("expireCount")).toBe(3);
    await store.stop();
  });

  it("a directory takes all that is in it with it, as one change", async () => {
    const { store, clock, events } = await scene();
    await store.submit(setDirectory("/d", 2));
    await store.submit(set("/d/sooner", 1));
    await store.submit(set("/d/later", 3));
    await store.submit(set("/d/_hidden/stays"));
    const below = eventsOf(store, "/d/_hidden/stays");
    await clock.advance(5_000);
    expect(events.slice(3).map(shape)).toEqual(["5 expire /d/sooner", "6 expire /d"]);
    expect(events[4]).toMatchObject({ node: { isDirectory: true }, prevNode: { isDirectory: true } });
    expect(below.map(shape)).toEqual(["6 expire /d"]);
    expect(store.counts.get("expireCount")).toBe(2);
    await store.stop();
  });

  it("a ttl of 0 is due at once", async () => {
    const { store, clock, events } = await scene();
    const { event } = await store.submit(set("/a", 0));
    expect(event.node).toMatchObject({ expiresAtMs: clock.nowMs() });
    expect(event.node).not.toHaveProperty("ttlSeconds");
    expect(isThere(store, "/a")).toBe(false);
    await clock.advance(1);
    expect(events.map(shape)).toEqual(["1 set /a", "2 expire /a"]);
    await store.stop();
  });
});

describe("a node stays", () => {
  const path = storePath("/a");
  const writes: readonly SingleCommand[] = [
    set("/a"),
    { kind: "update", path, value: "y" },
    { kind: "compareAndSwap", path, value: "y", expected: { value: "x" } },
    { kind: "update", path, value: "", ttlSeconds: 9, refresh: true },
  ];
  it.each(writes)("when $kind took its end away or put it off", async (command) => {
    const { store, clock } = await scene();
    await store.submit(set("/a", 1));
    await store.submit(command);
    await clock.advance(5_000);
    expect(isThere(store, "/a")).toBe(true);
    await store.stop();
  });

  it("when it was made anew, and its directory when the last child ended", async () => {
    const { store, clock } = await scene();
    await store.submit(set("/d/a", 1));
    await store.submit({ kind: "delete", path: storePath("/d/a") });
    await store.submit(set("/d/a"));
    await store.submit(set("/d2/a", 1));
    await clock.advance(5_000);
    expect(["/d/a", "/d2", "/d2/a"].map((each) => isThere(store, each))).toEqual([true, true, false]);
    await store.stop();
  });

  it.each([2 ** 31, 7_000_000_000, 2 ** 64])("for a ttl of %d s, which counts down", async (ttlSeconds) => {
    const { store, clock } = await scene();
    const { event } = await store.submit(set("/a", ttlSeconds));
    const asked = event.node.ttlSeconds ?? 0;
    await clock.advance(3 * 2 ** 31);
    expect(store.get(path).node.ttlSeconds).toBe(Math.min(asked, asked - Math.floor((3 * 2 ** 31) / 1_000)));
    expect(store.counts.get("expireCount")).toBe(0);
    await store.stop();
  });
});

it("nobody who watches or follows is told of a refresh, and it has a place in the history", async () => {
  const { store, events } = await scene();
  const told: unknown[] = [];
  store.follow("/", { replaced: () => {}, changed: (changes) => told.push(changes) });
  await store.submit(set("/a", 1));
  await store.submit({ kind: "update", path: storePath("/a"), value: "", ttlSeconds: 9, refresh: true });
  await store.submit(set("/b"));
  expect(events.map(shape)).toEqual(["1 set /a", "3 set /b"]);
  expect(told).toEqual([[{ path: "/a", text: "x" }], [{ path: "/b", text: "x" }]]);
  const replayed: StoreEvent[] = [];
  store
    .watch(
      { path: storePath("/"), recursive: true, waitIndex: 2 },
      { event: (event) => replayed.push(event) > 0, closed: () => {} },
    )
    .resume();
  expect(replayed.map(shape)).toEqual(["3 set /b"]);
  await store.stop();
});

describe("the clock", () => {
  it.each([-hourMs, hourMs])("that steps by %d ms changes nothing", async (stepMs) => {
    const { store, clock } = await scene();
    const { event } = await store.submit(set("/a", 10));
    clock.stepWallClock(stepMs);
    await clock.advance(4_500);
    const { node } = store.get(storePath("/a"));
    expect(node).toMatchObject({ ttlSeconds: 6, expiresAtMs: event.node.expiresAtMs });
    const later = await store.submit(set("/b", 10));
    expect(later.event.node.expiresAtMs).toBe((event.node.expiresAtMs ?? 0) + 4_500);
    await clock.advance(5_499);
    expect(isThere(store, "/a")).toBe(true);
    await clock.advance(1);
    expect(isThere(store, "/a")).toBe(false);
    await store.stop();
  });

  it.each([
    { name: "went on as usual", stepMs: 0 },
    { name: "is behind by an hour", stepMs: -hourMs },
    { name: "is ahead by an hour", stepMs: hourMs },
  ])("of the next start $name: what was left is left", async ({ stepMs }) => {
    const ttlSeconds = 6;
    const files = memoryFiles();
    const first = await scene(new FakeClock(), files);
    await first.store.submit(set("/a", 10));
    await first.clock.advance(4_000);
    await first.store.stop();
    const next = await scene(new FakeClock(first.clock.nowMs() + stepMs), files.reopened());
    expect(next.store.get(storePath("/a")).node).toMatchObject({
      ttlSeconds,
      expiresAtMs: next.clock.nowMs() + ttlSeconds * 1_000,
    });
    await next.clock.advance(ttlSeconds * 1_000 - 1);
    expect(isThere(next.store, "/a")).toBe(true);
    await next.clock.advance(1);
    expect(isThere(next.store, "/a")).toBe(false);
    expect(next.events.map(shape)).toEqual(["2 expire /a"]);
    await next.store.stop();
  });

  it("does not count while davit is down: what would have ended ends later, and is told", async () => {
    const files = memoryFiles();
    const first = await scene(new FakeClock(), files);
    await first.store.submit(set("/a", 10));
    await first.store.stop();
    const next = await scene(new FakeClock(first.clock.nowMs() + hourMs), files.reopened());
    await next.clock.advance(9_999);
    expect(isThere(next.store, "/a")).toBe(true);
    await next.clock.advance(1);
    expect(isThere(next.store, "/a")).toBe(false);
    expect(next.events.map(shape)).toEqual(["2 expire /a"]);
    await next.store.stop();
  });
});

it("of many that end together no more than 500 are logged in one record", async () => {
  const files = memoryFiles();
  const { store, clock } = await scene(new FakeClock(), files);
  const commands = Array.from({ length: 2_500 }, (_, number) => set(`/k${number}`, 1));
  await store.submit({ kind: "batch", commands });
  await clock.advance(1_000);
  await store.stop();
  expect(store.counts.get("expireCount")).toBe(2_500);
  const log = await openLog(files.reopened());
  const sizes: number[] = [];
  await log.onCommitted((_, bytes) => {
    const { command } = decodeRecord(bytes);
    sizes.push(command.kind === "batch" ? command.commands.length : 1);
  });
  await log.stop();
  expect(sizes).toEqual([2_500, 500, 500, 500, 500, 500]);
});

it("what has ended stays so, or ends again, whichever call on the disk the power fails at", async () => {
  for (let crashAt = 1, faults = 1; faults > 0; crashAt++) {
    const files = new FaultFiles(seededPick(crashAt), { crashAt });
    const clock = new FakeClock();
    const isAnswered = await setAndWait(files, clock);
    faults = files.faults;
    const store = await openStore(files.afterCrash(), { clock });
    // Where the end did not reach the disk, no more is known than that the key was set.
    await clock.advance(1_000);
    expect(isThere(store, "/a")).toBe(false);
    expect([...store.dump()].map(({ path }) => path)).toEqual(["/"]);
    // The set may or may not have reached the disk when it was not answered.
    expect(store.indexes.storeIndex === 2 || (!isAnswered && store.indexes.storeIndex === 0)).toBe(true);
    await store.stop();
  }
});

/** Sets a key that ends, and lets it end, on a disk that may fail at any call. @returns whether the set was answered. */
async function setAndWait(files: FaultFiles, clock: FakeClock): Promise<boolean> {
  let isAnswered = false;
  try {
    const store = await openStore(files, { clock });
    await store.submit(set("/a", 1)).then(
      () => {
        isAnswered = true;
      },
      () => {},
    );
    await clock.advance(1_000);
    await store.stop();
  } catch (error) {
    expect(error).toBeInstanceOf(Error);
  }
  return isAnswered;
}

it("while the log cannot be written nothing is seen to live on, and it ends when there is room", async () => {
  // Of the writes before that of the expiry one notes how far the log reaches.
  const files = new FaultFiles(seededPick(1), { failOnly: "append", failAt: 5, code: "ENOSPC" });
  const { store, clock, events } = await scene(new FakeClock(), files);
  await store.submit(set("/a", 1));
  await clock.advance(1_000);
  expect(files.faults).toBe(1);
  expect(isThere(store, "/a")).toBe(false);
  expect(events.map(shape)).toEqual(["1 set /a"]);
  await clock.advance(1_500);
  expect(events.map(shape)).toEqual(["1 set /a", "2 expire /a"]);
  await store.stop();
});

describe("a member that does not lead", () => {
  it("waits for the leader with writes that would find a due node, whatever else changes", {
    timeout: 5_000,
  }, async () => {
    const { apply, tree } = bound(new StateMachine(undefined));
    apply(set("/a", 1), 0);
    const submit = () => Promise.reject(new Error("only the leader ends keys"));
    const expiry = new Expiry({ tree, clock: new FakeClock(), nowMs: () => 1_000, leaderWaitMs: hourMs, submit });
    const held = [set("/a"), set("/a/below"), { kind: "delete", path: storePath("/"), recursive: true }] as const;
    const waiting = held.map((command) => expiry.leaderEnds(command));
    for (const command of [set("/b"), { kind: "delete", path: storePath("/b") }] as const) {
      expect(expiry.holdsUp(command)).toBe(false);
    }
    apply(set("/b"), 1_000);
    expiry.noticeTimers();
    await setImmediate();
    apply({ kind: "expire", path: storePath("/a"), expiresAtMs: 1_000 }, 1_000);
    expiry.noticeTimers();
    for (const command of held) expect(expiry.holdsUp(command)).toBe(false);
    await Promise.all(waiting);
    await expiry.stop();
  });
});

it("a write that lay in etcd for seconds does not end a key earlier than the write that was answered before it", () => {
  const machine = new StateMachine(undefined);
  const logged = (atMs: number, command: Command) =>
    machine.replay(decodeRecord(encodeRecord({ atMs, clockTerm: 1, command })), 1);
  logged(0, { kind: "batch", commands: [] });
  const path = storePath("/lock");
  // Its client gave it up at a member that waited for etcd, and wrote again at another member.
  logged(9_000, { kind: "set", path, value: "held", ttlSeconds: 4 });
  logged(12_000, { kind: "extend", path, modifiedIndex: 1, leftMs: 4_000 });
  logged(100, { kind: "set", path, value: "held", ttlSeconds: 4 });
  expect(machine.tree.timers.nextDueAtMs).toBe(16_000);
  expect(machine.lastAtMs).toBe(12_000);
});

it("a record of davit 0.2.0 with several members keeps its time, as its members have it", () => {
  const machine = new StateMachine(undefined);
  for (const atMs of [9_000, 100]) {
    const record = { v: 1, atMs, clockTerm: 1, command: { kind: "set", path: "/lock", value: "held", ttlSeconds: 4 } };
    machine.replay(decodeRecord(Buffer.from(JSON.stringify(record))), 1);
  }
  expect(machine.tree.timers.nextDueAtMs).toBe(4_100);
});

function bound(machine: StateMachine) {
  const apply = (command: Command, atMs: number) => machine.replay({ atMs, command }, 1);
  return { apply, tree: machine.tree };
}
