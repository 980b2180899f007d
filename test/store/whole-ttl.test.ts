/** Writes with a ttl whose answer comes late, by a slow disk. `test/members/ttl.test.ts` has slow etcds and clocks. */

import { expect, it } from "vitest";
import type { AppendFile } from "../../src/lib/files/files.ts";
import type { SingleCommand } from "../../src/store/command/command.ts";
import { soleMembership } from "../../src/store/core/log-port.ts";
import { storePath } from "../../src/store/core/node.ts";
import { Tree } from "../../src/store/tree/tree.ts";
import { WholeTtl } from "../../src/store/whole-ttl.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { FaultFiles, seededPick } from "../helpers/fault-files.ts";
import { openStore } from "../helpers/test-store.ts";

const path = storePath("/a");
const startMs = Date.UTC(2026, 0, 1);

/** A disk whose syncs take these times, one after the other. */
class SlowFiles extends FaultFiles {
  readonly clock = new FakeClock(startMs);
  syncsMs: number[] = [];

  constructor() {
    super(seededPick(1));
  }

  override async openAppend(name: string): Promise<AppendFile> {
    const file = await super.openAppend(name);
    return {
      ...file,
      sync: async () => {
        const takesMs = this.syncsMs.shift();
        if (takesMs !== undefined) await this.clock.advance(takesMs);
        await file.sync();
      },
    };
  }
}

async function slowStore() {
  const files = new SlowFiles();
  const { clock } = files;
  const store = await openStore(files, { clock });
  return { files, clock, store };
}

const written: readonly { readonly name: string; readonly command: SingleCommand }[] = [
  { name: "a set", command: { kind: "set", path, value: "1", ttlSeconds: 5 } },
  { name: "a new key", command: { kind: "create", path, value: "1", ttlSeconds: 5 } },
  { name: "a key in order", command: { kind: "createInOrder", path, value: "1", ttlSeconds: 5 } },
  { name: "a new directory", command: { kind: "set", path, value: "", dir: true, ttlSeconds: 5 } },
];

it.each(written)("$name whose answer is late has its whole ttl from the answer on", async ({ command }) => {
  const { files, clock, store } = await slowStore();
  files.syncsMs = [2_000, 300];
  const { event, indexes } = await store.submit(command);
  // A second more, because the `extend` might have taken as long.
  const endsAtMs = startMs + 2_000 + 5_000 + 1_000;
  expect(event.node).toMatchObject({ ttlSeconds: 5, expiresAtMs: endsAtMs, modifiedIndex: 1, createdIndex: 1 });
  expect(indexes.storeIndex).toBe(1);
  expect(store.get(event.node.path)).toMatchObject({ index: 1, node: { ttlSeconds: 5, expiresAtMs: endsAtMs } });
  expect(store.events.map(({ action }) => action)).toEqual([event.action]);
  await clock.advance(endsAtMs - clock.nowMs() - 1);
  expect(store.get(event.node.path).node.modifiedIndex).toBe(1);
  await clock.advance(1);
  expect(store.events.map(({ action }) => action)).toEqual([event.action, "expire"]);
  await store.stop();
});

it("a refresh, an update and a swap whose answers are late have their whole ttl", async () => {
  const { files, clock, store } = await slowStore();
  await store.submit({ kind: "set", path, value: "1" });
  const late: readonly SingleCommand[] = [
    { kind: "update", path, value: "2", ttlSeconds: 3 },
    { kind: "update", path, value: "", refresh: true, ttlSeconds: 3 },
    { kind: "compareAndSwap", path, value: "3", expected: { value: "2" }, ttlSeconds: 3 },
  ];
  for (const command of late) {
    files.syncsMs = [200];
    const { event } = await store.submit(command);
    expect(event.node.expiresAtMs).toBe(clock.nowMs() + 3_000 + 400);
  }
  expect(store.get(path)).toMatchObject({ index: 4, node: { value: "3", modifiedIndex: 4 } });
  await store.stop();
});

it("an answer in time is not followed by a record", async () => {
  const { files, store } = await slowStore();
  files.syncsMs = [50];
  const { event, indexes } = await store.submit({ kind: "set", path, value: "1", ttlSeconds: 5 });
  expect(event.node.expiresAtMs).toBe(startMs + 5_000);
  expect(store.indexes).toEqual(indexes);
  await store.stop();
});

it("an `extend` that takes too long is followed by another one", async () => {
  const { files, store } = await slowStore();
  files.syncsMs = [200, 700, 100];
  const { event } = await store.submit({ kind: "set", path, value: "1", ttlSeconds: 5 });
  expect(event.node.expiresAtMs).toBe(startMs + 900 + 5_000 + 1_000);
  await store.stop();
});

it("a write that took longer than its ttl is not acknowledged", async () => {
  const { files, store } = await slowStore();
  files.syncsMs = [2_000, 0, 0];
  await expect(store.submit({ kind: "set", path, value: "1", ttlSeconds: 1 })).rejects.toMatchObject({
    refusal: "logFailed",
    causeText: expect.stringMatching(/the key may be written\): .* try again$/),
  });
  await store.stop();
});

it("an endless ttl and a ttl of 0 are as they were", async () => {
  const { files, store } = await slowStore();
  files.syncsMs = [2_000];
  const { event } = await store.submit({ kind: "set", path, value: "1", ttlSeconds: 2 ** 40 });
  expect(event.node.expiresAtMs).toBe(Date.UTC(9999, 11, 31, 23, 59, 59));
  files.syncsMs = [2_000];
  await store.submit({ kind: "set", path, value: "1", ttlSeconds: 0 });
  expect(() => store.get(path)).toThrow();
  await store.stop();
});

it("a replay finds the later end", async () => {
  const { files, store, clock } = await slowStore();
  files.syncsMs = [2_000];
  const { event } = await store.submit({ kind: "set", path, value: "1", ttlSeconds: 5 });
  const { run } = store;
  // A start gives no node more than its ttl.
  await clock.advance(1_000);
  await store.stop();
  const again = await openStore(files.reopened(), { clock });
  expect(again.get(path).node).toMatchObject({ expiresAtMs: event.node.expiresAtMs, ttlSeconds: 5 });
  expect([again.run, again.indexes.storeIndex]).toEqual([run, 1]);
  await again.stop();
});

it("begins once the leader's time is known, and logs nothing for a write that took no time", async () => {
  const clock = new FakeClock(startMs);
  const commands: unknown[] = [];
  const membership = { ...soleMembership(() => clock.nowMs()), behindMs: Number.POSITIVE_INFINITY };
  const wholeTtl = new WholeTtl({
    tree: new Tree(),
    clock,
    membership,
    extend: async (command) => commands.push(command),
  });
  let isSubmitted = false;
  const indexes = { storeIndex: 1, raftIndex: 1, raftTerm: 1 };
  const node = { path, isDirectory: false, createdIndex: 1, modifiedIndex: 1, expiresAtMs: startMs + 9_000 };
  const event = { action: "set", node } as const;
  const written = wholeTtl.keep(1, async () => {
    isSubmitted = true;
    return { event, events: [event], indexes };
  });
  await clock.advance(1_000);
  expect(isSubmitted).toBe(false);
  membership.behindMs = 0;
  await clock.advance(100);
  expect((await written).event).toBe(event);
  expect(commands).toEqual([]);
});

it.each([
  { what: "ends as late", secondTtl: 9, answer: "resolves" },
  { what: "ends earlier", secondTtl: 1, answer: "rejects" },
] as const)("a late write that another one followed, which $what: it $answer", async ({ secondTtl, answer }) => {
  const { files, store } = await slowStore();
  files.syncsMs = [2_000];
  const first = store.submit({ kind: "set", path, value: "1", ttlSeconds: 5 });
  const second = store.submit({ kind: "set", path, value: "2", ttlSeconds: secondTtl });
  const [outcome] = await Promise.allSettled([first, second]);
  if (answer === "resolves") expect(outcome).toMatchObject({ value: { event: { node: { value: "1" } } } });
  else expect(outcome).toMatchObject({ reason: { refusal: "logFailed" } });
  await store.stop();
});
