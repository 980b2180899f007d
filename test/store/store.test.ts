import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Feed } from "../../src/model/feed.ts";
import type { SingleCommand, Submission } from "../../src/store/command/command.ts";
import { type StoreEvent, storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import type { Store } from "../../src/store/store.ts";
import { anySubmission } from "../helpers/any-command.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { FaultFiles, seededPick } from "../helpers/fault-files.ts";
import { memoryFiles, openStore } from "../helpers/test-store.ts";

const set = (path: string, value: string): SingleCommand => ({ kind: "set", path: storePath(path), value });

const setDirectory = (path: string): SingleCommand => ({ kind: "set", path: storePath(path), value: "", dir: true });

/** Follows a prefix and keeps every call. */
function followed(store: Store, prefix: string) {
  const calls: unknown[] = [];
  const feed: Feed = store;
  const stop = feed.follow(prefix, {
    replaced: (documents) => calls.push(new Map(documents)),
    changed: (changes) => calls.push(new Map(changes.map(({ path, text }) => [path, text]))),
  });
  return { calls, stop };
}

describe("`follow`", () => {
  it("begins with every file below the prefix, hidden ones too", async () => {
    const store = await openStore();
    for (const path of ["/p/a", "/p/_h/b", "/px"]) await store.submit(set(path, path));
    expect(followed(store, "/p").calls).toEqual([
      new Map([
        ["/p/a", "/p/a"],
        ["/p/_h/b", "/p/_h/b"],
      ]),
    ]);
    await store.stop();
  });

  it("begins with nothing when nothing is there", async () => {
    const store = await openStore();
    expect(followed(store, "/p").calls).toEqual([new Map()]);
    await store.stop();
  });

  it.each<{ name: string; command: Submission; tells: readonly (readonly [string, string | undefined])[] | "nothing" }>(
    [
      { name: "a set", command: set("/p/new", "1"), tells: [["/p/new", "1"]] },
      { name: "a set outside", command: set("/px", "1"), tells: "nothing" },
      { name: "a new directory", command: setDirectory("/p/new"), tells: "nothing" },
      {
        name: "a directory over a file",
        command: setDirectory("/p/a"),
        tells: [["/p/a", undefined]],
      },
      { name: "a delete", command: { kind: "delete", path: storePath("/p/a") }, tells: [["/p/a", undefined]] },
      {
        name: "a recursive delete above",
        command: { kind: "delete", path: storePath("/p"), recursive: true },
        tells: [
          ["/p/a", undefined],
          ["/p/d/_b", undefined],
          ["/p/d/e/c", undefined],
        ],
      },
      { name: "a refused command", command: { kind: "delete", path: storePath("/p") }, tells: "nothing" },
      {
        name: "a batch, once and with the last text of each file",
        command: {
          kind: "batch",
          commands: [set("/p/x", "1"), set("/px", "2"), set("/p/x", "3"), { kind: "delete", path: storePath("/p/a") }],
        },
        tells: [
          ["/p/x", "3"],
          ["/p/a", undefined],
        ],
      },
    ],
  )("tells of $name", async ({ command, tells }) => {
    const store = await openStore();
    for (const path of ["/p/a", "/p/d/_b", "/p/d/e/c"]) await store.submit(set(path, "0"));
    const { calls } = followed(store, "/p");
    await store.submit(command).catch((error: unknown) => expect(error).toBeInstanceOf(StoreError));
    expect(calls.slice(1)).toEqual(tells === "nothing" ? [] : [new Map(tells)]);
    await store.stop();
  });

  it("ends when it is stopped", async () => {
    const store = await openStore();
    const { calls, stop } = followed(store, "/p");
    stop();
    await store.submit(set("/p/a", "1"));
    expect(calls).toHaveLength(1);
    await store.stop();
  });
});

describe("`submit`", () => {
  it("answers with the event and the indexes right after it", async () => {
    const store = await openStore();
    const [first, second] = await Promise.all([store.submit(set("/a", "1")), store.submit(set("/a", "2"))]);
    expect(first).toMatchObject({ event: { action: "set", node: { modifiedIndex: 1 } }, indexes: { storeIndex: 1 } });
    expect(second.indexes).toEqual({ storeIndex: 2, raftIndex: first.indexes.raftIndex + 1, raftTerm: 2 });
    await store.stop();
  });

  it("logs refusals, too: they take a sequence and no index", async () => {
    const store = await openStore();
    const { raftIndex } = (await store.submit(set("/a", "1"))).indexes;
    await expect(store.submit({ kind: "create", path: storePath("/a"), value: "" })).rejects.toMatchObject({
      refusal: "keyExists",
      causeText: "/a",
      index: 1,
    });
    expect(store.indexes).toMatchObject({ storeIndex: 1, raftIndex: raftIndex + 1 });
    await store.stop();
  });

  it("answers 300 when the log is full, and again works when there is room", async () => {
    const clock = new FakeClock();
    const files = new FaultFiles(seededPick(1), { failOnly: "append", failAt: 5, code: "ENOSPC" });
    const store = await openStore(files, { clock });
    await store.submit(set("/a", "1"));
    await expect(store.submit(set("/b", "2"))).rejects.toMatchObject({ refusal: "logFailed", index: 0 });
    expect(store.status).toBe("full");
    await clock.advance(1_000);
    expect(store.status).toBe("writable");
    expect((await store.submit(set("/c", "3"))).event.node.modifiedIndex).toBe(2);
    expect(() => store.get(storePath("/b"))).toThrowError(expect.objectContaining({ refusal: "keyNotFound" }));
    await store.stop();
  });

  it("answers 300 after it was stopped", async () => {
    const store = await openStore();
    await store.stop();
    await store.stop();
    await expect(store.submit(set("/a", "1"))).rejects.toMatchObject({ refusal: "logFailed" });
    expect(store.status).toBe("closed");
  });
});

it("a batch wakes watchers after all of it was applied", async () => {
  const store = await openStore();
  const seen: (string | undefined)[] = [];
  const watch = store.watch(
    { path: storePath("/a"), stream: true },
    {
      event: () => {
        seen.push(store.get(storePath("/b")).node.value);
        return true;
      },
      closed: () => {},
    },
  );
  watch.resume();
  await store.submit({ kind: "batch", commands: [set("/a", "1"), set("/b", "2")] });
  expect(seen).toEqual(["2"]);
  expect(store.watcherCount).toBe(1);
  await store.stop();
  expect(store.watcherCount).toBe(0);
});

it("a replay gives the same nodes, indexes and history as the life before", async () => {
  const step = fc.record({ command: anySubmission, passMs: fc.constantFrom(0, 0, 500, 2_000) });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const files = memoryFiles();
      const clock = new FakeClock();
      const live = await openStore(files, { clock, maxSegmentBytes: 500 });
      for (const { command, passMs } of steps) {
        await live.submit(command).catch((error: unknown) => expect(error).toBeInstanceOf(StoreError));
        if (passMs > 0) await clock.advance(passMs);
      }
      await clock.advance(1);
      const before = stateOf(live);
      await live.stop();
      const replayed = await openStore(files.reopened(), { clock });
      expect(stateOf(replayed)).toEqual(before);
      const { clusterId, memberId, term } = live.identity;
      expect(replayed.identity).toMatchObject({ clusterId, memberId, term: term + 1 });
      expect(replayed.run).toBe(live.run);
      await replayed.stop();
    }),
  );
});

function stateOf(store: Store) {
  const history: StoreEvent[] = [];
  for (const path of ["/", "/_h"]) {
    store
      .watch(
        { path: storePath(path), recursive: true, stream: true, waitIndex: 1 },
        { event: (event) => history.push(event) > 0, closed: () => {} },
      )
      .resume();
  }
  const nodes = [...store.dump()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
  const { indexes, bytes } = store;
  return { dump: JSON.stringify(nodes), history, storeIndex: indexes.storeIndex, bytes };
}
