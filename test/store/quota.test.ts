import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SingleCommand } from "../../src/store/command/command.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { anySubmission } from "../helpers/any-command.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { openStore } from "../helpers/test-store.ts";

const path = storePath("/key");
const set = (value: string, more: { readonly ttlSeconds?: number } = {}): SingleCommand => ({
  kind: "set",
  path,
  value,
  ...more,
});
const refused = { refusal: "quotaExceeded", index: 0 };

describe("at the quota", () => {
  // `/key` takes 4 bytes.
  const quotaBytes = 4 + 10;

  it("what fits is taken, and a byte more is not", async () => {
    const store = await openStore(undefined, { quotaBytes });
    await expect(store.submit(set("x".repeat(11)))).rejects.toMatchObject({
      ...refused,
      causeText: "the quota of 14 bytes would be exceeded; delete keys or raise it",
    });
    await store.submit(set("é".repeat(5)));
    expect(store.bytes).toBe(quotaBytes);
    expect(store.indexes).toMatchObject({ storeIndex: 1, raftIndex: 2 });
    await store.stop();
  });

  const allowed: readonly (readonly [string, SingleCommand])[] = [
    ["a shorter value", set("x")],
    ["another of the same length", { kind: "compareAndSwap", path, value: "y".repeat(10), expected: { index: 1n } }],
    ["a refresh", { kind: "update", path, value: "", ttlSeconds: 5, refresh: true }],
    ["a delete", { kind: "delete", path }],
    ["a compared delete", { kind: "compareAndDelete", path, expected: { index: 1n } }],
    ["a directory in place of the key", { kind: "set", path, value: "dropped", dir: true }],
  ];
  it.each(allowed)("%s is taken", async (_, command) => {
    const store = await openStore(undefined, { quotaBytes });
    await store.submit(set("x".repeat(10)));
    await expect(store.submit(command)).resolves.toMatchObject({ indexes: { storeIndex: 2 } });
    await store.stop();
  });

  const more: readonly (readonly [string, SingleCommand])[] = [
    ["a longer value", { kind: "update", path, value: "x".repeat(11) }],
    ["another key", { kind: "create", path: storePath("/a"), value: "" }],
    ["a directory", { kind: "set", path: storePath("/a"), value: "", dir: true }],
    ["a name in order", { kind: "createInOrder", path: storePath("/"), value: "" }],
  ];
  it.each(more)("%s is not", async (_, command) => {
    const store = await openStore(undefined, { quotaBytes });
    await store.submit(set("x".repeat(10)));
    await expect(store.submit(command)).rejects.toMatchObject(refused);
    await store.stop();
  });

  it("writes on their way to the disk count", async () => {
    const store = await openStore(undefined, { quotaBytes });
    const writes = ["/aaa", "/bbb", "/ccc", "/ddd"].map((each) =>
      store.submit({ kind: "set", path: storePath(each), value: "" }),
    );
    const results = await Promise.allSettled(writes);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled", "rejected"]);
    await store.stop();
  });

  it("what has ended takes no room", async () => {
    const clock = new FakeClock();
    const store = await openStore(undefined, { quotaBytes, clock });
    await store.submit(set("x".repeat(10), { ttlSeconds: 1 }));
    await clock.advance(1_000);
    expect(store.bytes).toBe(0);
    await store.submit(set("x".repeat(10)));
    await store.stop();
  });

  it("davit's own batches are taken all the same", async () => {
    const store = await openStore(undefined, { quotaBytes });
    await store.submit({ kind: "batch", commands: [set("x".repeat(100))] });
    expect(store.bytes).toBe(104);
    await store.stop();
  });
});

it("no clients' writes, in whatever order, bring the store beyond its quota", async () => {
  const anySingle = anySubmission.filter(({ kind }) => kind !== "batch");
  await fc.assert(
    fc.asyncProperty(
      fc.array(anySingle, { maxLength: 40 }),
      fc.integer({ min: 1, max: 60 }),
      async (all, quotaBytes) => {
        const store = await openStore(undefined, { quotaBytes });
        const results = await Promise.allSettled(all.map((command) => store.submit(command)));
        for (const result of results)
          if (result.status === "rejected") expect(result.reason).toBeInstanceOf(StoreError);
        expect(store.bytes).toBeLessThanOrEqual(quotaBytes);
        await store.stop();
      },
    ),
  );
});
