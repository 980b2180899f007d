/** Whole stores across snapshots: what a start from one finds is what a replay of the whole log finds. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nextTurn } from "../../src/lib/slices.ts";
import type { Submission } from "../../src/store/command/command.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { StateReader } from "../../src/store/snapshot/snapshot.ts";
import type { Store } from "../../src/store/store.ts";
import { Tree } from "../../src/store/tree/tree.ts";
import { segmentHeadBytes } from "../../src/store/wal/record.ts";
import { EventRing } from "../../src/store/watch/event-ring.ts";
import { anySubmission } from "../helpers/any-command.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import type { FaultFiles } from "../helpers/fault-files.ts";
import { ofVersion } from "../helpers/later-version.ts";
import { dataDirectory, memoryFiles, openStore } from "../helpers/test-store.ts";

const every = (records: number) => ({
  maxSegmentBytes: segmentHeadBytes + 300,
  snapshotInterval: { records, bytes: 2 ** 30 },
});

/** Everything that must be the same, byte for byte. */
function stateOf(store: Store) {
  const nodes = [...store.dump()].map((node) => JSON.stringify(node)).toSorted();
  return {
    nodes,
    events: store.events.map((event) => JSON.stringify(event)),
    bytes: store.bytes,
    run: store.run,
    ...store.indexes,
  };
}

async function submitAll(store: Store, commands: readonly Submission[]): Promise<void> {
  for (const command of commands) {
    await store.submit(command).catch((error: unknown) => expect(error).toBeInstanceOf(StoreError));
  }
}

/** Lets a snapshot that is being taken be written. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await nextTurn();
}

const setsOf = (count: number) =>
  Array.from({ length: count }, (_, number): Submission => {
    const path = storePath(`/d${number % 5}/k${number}`);
    return { kind: "set", path, value: path.repeat(10), ttlSeconds: 1_000 };
  });

async function setsWithTurns(store: Store, count: number): Promise<void> {
  for (const command of setsOf(count)) {
    await store.submit(command);
    await turns();
  }
}

const named = async (files: FaultFiles, ending: string) =>
  (await files.list(dataDirectory)).filter((name) => name.endsWith(ending));

/** A store that took some snapshots, as a power cut leaves it, and its state. */
async function afterSnapshots() {
  const files = memoryFiles();
  const store = await openStore(files, every(10));
  await setsWithTurns(store, 45);
  const state = stateOf(store);
  return { files: files.reopened(), state };
}

function expectSame(store: Store, state: ReturnType<typeof stateOf>): void {
  expect({ ...stateOf(store), raftTerm: 0 }).toEqual({ ...state, raftTerm: 0 });
}

it("a start from a snapshot ends in the state of a replay of everything, and goes on from there alike", async () => {
  const anyRuns = fc.array(fc.array(anySubmission, { maxLength: 15 }), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(anyRuns, fc.integer({ min: 1, max: 12 }), async (runs, records) => {
      let files = { snapshots: memoryFiles(), none: memoryFiles() };
      for (const commands of [...runs, []]) {
        const snapshots = await openStore(files.snapshots, { clock: new FakeClock(0), ...every(records) });
        const none = await openStore(files.none, { clock: new FakeClock(0) });
        for (const command of commands) {
          for (const store of [snapshots, none]) await submitAll(store, [command]);
          await turns();
        }
        expect(stateOf(snapshots)).toEqual(stateOf(none));
        for (const store of [snapshots, none]) await store.stop();
        files = { snapshots: files.snapshots.reopened(), none: files.none.reopened() };
      }
    }),
  );
});

it("changes while a snapshot is taken are not in it, and not lost", async () => {
  const files = memoryFiles();
  const store = await openStore(files, every(2_000));
  // So large that it takes many slices.
  await submitAll(store, setsOf(2_000));
  await submitAll(store, setsOf(300));
  await turns();
  for (let slice = 0; slice < 20; slice++) await turns();
  expect(await named(files, ".snapshot")).toHaveLength(1);
  const state = stateOf(store);
  const again = await openStore(files.reopened());
  expectSame(again, state);
  await again.stop();
  await store.stop();
});

describe("what is kept", () => {
  it("is two snapshots, and the log from the older one on", async () => {
    const { files, state } = await afterSnapshots();
    const snapshots = await named(files, ".snapshot");
    expect(snapshots).toHaveLength(2);
    const older = Number.parseInt(snapshots[0] ?? "", 10);
    const firsts = (await named(files, ".log")).map((name) => Number.parseInt(name, 10));
    expect(firsts[0]).toBeGreaterThan(1);
    expect(firsts[0]).toBeLessThanOrEqual(older + 1);
    expect(firsts[1]).toBeGreaterThan(older + 1);
    const store = await openStore(files);
    expectSame(store, state);
    await store.stop();
  });

  it.each([
    { name: "cut", change: (content: Buffer) => content.subarray(0, -1) },
    { name: "empty", change: () => Buffer.alloc(0) },
    { name: "of another kind", change: () => Buffer.from("not a snapshot, but as long as one may be") },
    {
      name: "changed in one bit",
      change: (content: Buffer) => content.fill((content[100] ?? 0) ^ 4, 100, 101),
    },
  ])("is enough when the newest snapshot is $name, which the next one takes away", async ({ change }) => {
    const { files, state } = await afterSnapshots();
    const [older, newest] = await named(files, ".snapshot");
    files.damage(`${dataDirectory}/${newest}`, change);
    const store = await openStore(files, every(10));
    expectSame(store, state);
    await setsWithTurns(store, 1);
    await turns();
    const kept = await named(files, ".snapshot");
    expect(kept).toHaveLength(2);
    expect(kept[0]).toBe(older);
    expect(kept).not.toContain(newest);
    const later = stateOf(store);
    await store.stop();
    const again = await openStore(files.reopened());
    expect(stateOf(again).events).toEqual(later.events);
    await again.stop();
  });

  it("is enough when the newest snapshot is missing", async () => {
    const { files, state } = await afterSnapshots();
    await files.remove(`${dataDirectory}/${(await named(files, ".snapshot"))[1]}`);
    const store = await openStore(files);
    expectSame(store, state);
    await store.stop();
  });

  it("is not enough when both are damaged: that is refused", async () => {
    const { files } = await afterSnapshots();
    for (const name of await named(files, ".snapshot")) files.damage(`${dataDirectory}/${name}`, () => Buffer.alloc(9));
    await expect(openStore(files)).rejects.toMatchObject({
      reason: "damaged",
      message: expect.stringMatching(/but record 1 should follow; bring back the missing file, restore a backup/),
    });
  });

  it("may hold segments that were to be removed, in any order", async () => {
    const files = memoryFiles();
    const store = await openStore(files, every(10));
    await setsWithTurns(store, 12);
    const early = await named(files, ".log");
    const first = files.contentOf(`${dataDirectory}/${early[0]}`);
    await setsWithTurns(store, 33);
    await turns();
    const left = files.reopened();
    expect(await named(left, ".log")).not.toContain(early[0]);
    left.damage(`${dataDirectory}/${early[0]}`, () => first);
    const again = await openStore(left);
    expectSame(again, stateOf(store));
    await again.stop();
    await store.stop();
  });
});

describe("a snapshot of a later version is refused", () => {
  it("by its frame", async () => {
    const { files } = await afterSnapshots();
    const [, newest] = await named(files, ".snapshot");
    const path = `${dataDirectory}/${newest}`;
    files.damage(path, ofVersion("snapshot", 3));
    await expect(openStore(files)).rejects.toMatchObject({
      reason: "newerFormat",
      message: `Reading "${path}": its version is 3 and this davit knows 2; start the davit that wrote it, or a later one`,
    });
  });
});

describe("the state in a snapshot", () => {
  function read(...lines: readonly string[]): void {
    const reader = new StateReader(new Tree(), new EventRing());
    for (const line of lines) reader.push(Buffer.from(`${line}\n`));
    reader.end();
  }
  const head = '{"v":1,"index":0,"oldestIndex":1}';

  it("of a later version is refused", () => {
    expect(() => read('{"v":2}')).toThrow("Reading a snapshot: its version is 2 and this davit knows 1");
  });

  it.each([
    { name: "no line at all", lines: [] },
    { name: "something that is no JSON", lines: [head, "secret"] },
    { name: "a node without a path", lines: [head, '{"value":"x","createdIndex":1,"modifiedIndex":1}'] },
    { name: "an event of another kind", lines: [head, '{"event":{"action":"eat"}}'] },
    { name: "a history that ends elsewhere", lines: ['{"v":1,"index":9,"oldestIndex":1}'] },
  ])("that holds $name is damage, and its text is not told", ({ lines }) => {
    expect(() => read(...lines)).toThrow(/^Reading the store: its [a-zA-Z' ]+ is not what davit writes/);
    expect(() => read(...lines)).not.toThrow("secret");
  });

  it("that ends within a character is damage", () => {
    const reader = new StateReader(new Tree(), new EventRing());
    reader.push(Buffer.from(`${head}\n`));
    reader.push(Buffer.of(0xc3));
    expect(() => reader.end()).toThrow("is not what davit writes");
  });

  it("may have its lines cut anywhere, also within a character", () => {
    const tree = new Tree();
    const bytes = Buffer.from(`${head}\n{"file":"/é","value":"☃","createdIndex":0,"modifiedIndex":0}\n`);
    const reader = new StateReader(tree, new EventRing());
    for (const byte of bytes) reader.push(Buffer.of(byte));
    reader.end();
    expect([...tree.walk(storePath("/é"))]).toMatchObject([{ path: "/é", value: "☃" }]);
  });
});

describe("a start that read more than an interval", () => {
  const never = { snapshotInterval: { records: 10_000, bytes: 2 ** 30 } };

  async function afterSets(count: number): Promise<FaultFiles> {
    const files = memoryFiles();
    const store = await openStore(files, never);
    await setsWithTurns(store, count);
    return files.reopened();
  }

  it("takes its first snapshot after a hundredth of an interval", async () => {
    const files = await afterSets(300);
    const store = await openStore(files, every(200));
    await setsWithTurns(store, 1);
    expect(await named(files, ".snapshot")).toEqual([]);
    await setsWithTurns(store, 1);
    await expect.poll(() => named(files, ".snapshot")).toHaveLength(1);
    const again = await openStore(files.reopened());
    expectSame(again, stateOf(store));
    await again.stop();
    await store.stop();
  });

  it("takes it at once after two intervals, so that short runs do not let the log grow for ever", async () => {
    const files = await afterSets(400);
    const store = await openStore(files, every(200));
    await setsWithTurns(store, 1);
    await expect.poll(() => named(files, ".snapshot")).toHaveLength(1);
    await store.stop();
  });
});

describe("a snapshot that fails", () => {
  it("leaves nothing behind, loses nothing, and another is taken later", async () => {
    // The log's head and term, how far it reaches, ten sets, and the snapshot's head are written before.
    const plan = { failOnly: "append", failAt: 15, code: "ENOSPC" } as const;
    const files = memoryFiles().reopened(plan);
    const store = await openStore(files, { snapshotInterval: { records: 10, bytes: 2 ** 30 } });
    await setsWithTurns(store, 10);
    await turns();
    expect(files.faults).toBe(1);
    expect((await files.list(dataDirectory)).filter((name) => !name.endsWith(".log"))).toEqual(["log-end"]);
    await setsWithTurns(store, 10);
    await turns();
    expect(await named(files, ".snapshot")).toHaveLength(1);
    const again = await openStore(files.reopened());
    expectSame(again, stateOf(store));
    await again.stop();
    await store.stop();
  });
});
