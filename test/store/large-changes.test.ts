/** What is done in steps because there is much of it must end as if it had been done at once. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nextTurn } from "../../src/lib/slices.ts";
import { apply, type Command, type SingleCommand } from "../../src/store/command/command.ts";
import { decodeRecord, encodeBatchRecord, encodeRecord } from "../../src/store/command/command-codec.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { Tree } from "../../src/store/tree/tree.ts";
import { anySubmission } from "../helpers/any-command.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { memoryFiles, openStore } from "../helpers/test-store.ts";

const set = (path: string, ttlSeconds?: number): SingleCommand => ({
  kind: "set",
  path: storePath(path),
  value: path,
  ...(ttlSeconds !== undefined && { ttlSeconds }),
});
const remove = (path: string): SingleCommand => ({ kind: "delete", path: storePath(path), recursive: true });
const many = (directory: string, count: number, ttlSeconds?: number) =>
  Array.from({ length: count }, (_, number) => set(`${directory}/k${number}`, ttlSeconds));

function run(tree: Tree, ...commands: readonly Command[]): void {
  for (const command of commands) apply(tree, { atMs: 0, command });
}

/** The result of a generator and how often it yielded. */
function stepped<Result>(work: Generator<undefined, Result>): { readonly result: Result; readonly yields: number } {
  for (let yields = 0; ; yields++) {
    const step = work.next();
    if (step.done === true) return { result: step.value, yields };
  }
}

describe("timers of a directory that went with many of them", () => {
  it("leave in steps, those of others stay, and the bytes are right at once", () => {
    const tree = new Tree();
    run(tree, ...many("/gone/a", 4_000, 60), ...many("/gone/b", 4_000, 60), ...many("/stays", 10, 60));
    const { bytes } = tree;
    run(tree, remove("/gone"));
    expect([tree.timers.size, tree.detached.isEmpty]).toEqual([8_010, false]);
    tree.detached.sweep(3_000);
    expect(tree.timers.size).toBe(5_010);
    tree.detached.sweep(10_000);
    expect([tree.timers.size, tree.detached.isEmpty]).toEqual([10, true]);
    const fresh = new Tree();
    run(fresh, ...many("/stays", 10, 60));
    expect(tree.bytes).toBe(fresh.bytes);
    expect(bytes).toBeGreaterThan(tree.bytes);
  });

  it("stay where they are when the batch that took it away is undone", () => {
    const tree = new Tree();
    run(tree, ...many("/d", 6_000, 60));
    const refused: Command = { kind: "batch", commands: [remove("/d"), { kind: "delete", path: storePath("/none") }] };
    expect(() => run(tree, refused)).toThrow(StoreError);
    tree.detached.sweep(100_000);
    expect([tree.timers.size, tree.detached.isEmpty]).toEqual([6_000, true]);
  });

  it("end nothing: neither before they are swept, nor a node of the same name, nor after a restart", async () => {
    const files = memoryFiles();
    const clock = new FakeClock();
    const store = await openStore(files, { clock });
    await store.submit({ kind: "batch", commands: many("/d", 6_000, 1) });
    await store.submit(remove("/d"));
    await store.submit(set("/d/k1", 5));
    await clock.advance(1_000);
    expect([store.counts.get("expireCount"), store.indexes.storeIndex]).toEqual([0, 6_002]);
    for (let turn = 0; turn < 10; turn++) await nextTurn();
    await store.stop();
    const again = await openStore(files.reopened(), { clock });
    await clock.advance(3_999);
    expect(again.get(storePath("/d/k1")).node.ttlSeconds).toBe(1);
    await clock.advance(1);
    expect([again.counts.get("expireCount"), again.indexes.storeIndex]).toEqual([1, 6_003]);
    await again.stop();
  });
});

describe("a batch that is encoded in steps", () => {
  const anyRun = fc.constantFrom(undefined, "4a00f2");

  it("has the bytes of one that is not", () => {
    fc.assert(
      fc.property(fc.nat(), anyRun, fc.array(anySubmission, { minLength: 1 }), (atMs, run, submissions) => {
        const commands = submissions.flatMap((each) => (each.kind === "batch" ? each.commands : [each]));
        const { result } = stepped(encodeBatchRecord({ atMs, run }, commands));
        expect(Buffer.compare(result, encodeRecord({ atMs, run, command: { kind: "batch", commands } }))).toBe(0);
      }),
    );
  });

  it("yields between them, and a small one does not", () => {
    const commands = Array.from({ length: 40 }, (_, number) => ({ ...set(`/k${number}`), value: "é".repeat(20_000) }));
    const { result, yields } = stepped(encodeBatchRecord({ atMs: 7 }, commands));
    // Twice while it is written out, and twice while that is put together.
    expect(yields).toBe(4);
    expect(decodeRecord(result)).toEqual({ atMs: 7, command: { kind: "batch", commands } });
    expect(stepped(encodeBatchRecord({ atMs: 7 }, [set("/a")])).yields).toBe(0);
  });

  it("is one record, applied as one, beside what others write meanwhile", async () => {
    const files = memoryFiles();
    const store = await openStore(files);
    const commands = Array.from({ length: 2_000 }, (_, number) => ({
      ...set(`/b/k${number}`),
      value: "x".repeat(1_000),
    }));
    const [batch, single] = await Promise.all([
      store.submit({ kind: "batch", commands }),
      store.submit(set("/single")),
    ]);
    expect(single.event.node.modifiedIndex).toBe(1);
    expect(batch.events.map(({ node }) => node.modifiedIndex)).toEqual(commands.map((_, number) => number + 2));
    await store.stop();
    const again = await openStore(files.reopened());
    expect(again.bytes).toBe(store.bytes);
    expect(again.get(storePath("/b/k1999")).node.value).toBe("x".repeat(1_000));
    await again.stop();
  });
});
