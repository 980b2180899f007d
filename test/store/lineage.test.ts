/** A store says which of its starts made its last change, however it is stopped, copied and set back. */

import { expect, it } from "vitest";
import { nextTurn } from "../../src/lib/slices.ts";
import { encodeRecord } from "../../src/store/command/command-codec.ts";
import { storePath } from "../../src/store/core/node.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { FaultFiles, seededPick } from "../helpers/fault-files.ts";
import { memoryFiles, openLog, openStore } from "../helpers/test-store.ts";

let starts = 0;
/** Every start has random bytes of its own. */
const opened = (files: FaultFiles, { snapshotEvery = 1_000, clock = new FakeClock() } = {}) => {
  const start = ++starts;
  return openStore(files, {
    random: (bytes) => new Uint8Array(bytes).fill(start),
    clock,
    snapshotInterval: { records: snapshotEvery, bytes: 2 ** 30 },
  });
};

const write = (store: Store) => store.submit({ kind: "set", path: storePath("/a"), value: "x" });

it("names no start before the first change, and then the one that made it", async () => {
  const files = memoryFiles();
  const store = await opened(files);
  expect(store.run).toBeUndefined();
  await write(store);
  expect(store.run).toBe(store.identity.run);
  await write(store);
  expect(store.run).toBe(store.identity.run);
  await store.stop();
});

it("keeps to the start before while nothing changes, and goes on with its own change", async () => {
  const files = memoryFiles();
  const first = await opened(files);
  await write(first);
  await first.stop();
  const later = files.reopened();
  const quiet = await opened(later);
  expect(quiet.run).toBe(first.run);
  await quiet.stop();
  const third = await opened(later.reopened());
  expect(third.run).toBe(first.run);
  await write(third);
  expect(third.run).toBe(third.identity.run);
  await third.stop();
});

it("names another start at the same index and term after a volume was set back", async () => {
  const files = memoryFiles();
  const first = await opened(files);
  await write(first);
  await first.stop();
  const snapshot = files.reopened();
  const lost = await opened(files.reopened());
  await write(lost);
  const restored = await opened(snapshot);
  await write(restored);
  expect(restored.indexes).toEqual(lost.indexes);
  expect(restored.run).not.toBe(lost.run);
  await Promise.all([lost.stop(), restored.stop()]);
});

it("has it from a snapshot, too", async () => {
  const files = memoryFiles();
  const store = await opened(files, { snapshotEvery: 2 });
  for (let count = 0; count < 10; count++) {
    await write(store);
    await nextTurn();
  }
  const { run } = store;
  await store.stop();
  const again = await opened(files.reopened());
  expect(again.run).toBe(run);
  await again.stop();
});

it("names none once a davit wrote that knew none", async () => {
  const files = memoryFiles();
  const store = await opened(files);
  await write(store);
  await store.stop();
  const later = files.reopened();
  const older = await openLog(later);
  await older.loadSnapshot();
  await older.onCommitted(() => {});
  await older.propose(encodeRecord({ atMs: 1, command: { kind: "set", path: storePath("/a"), value: "y" } }));
  await older.stop();
  const newer = await opened(later.reopened());
  expect(newer.run).toBeUndefined();
  await write(newer);
  expect(newer.run).toBe(newer.identity.run);
  await newer.stop();
});

it("is told by the first record that reaches the disk, when those before did not", async () => {
  // Before come the head of the segment, the term of this start, and how far the log reaches.
  const files = new FaultFiles(seededPick(3), { failOnly: "append", failAt: 4, code: "ENOSPC" });
  const clock = new FakeClock();
  const store = await opened(files, { clock });
  await expect(write(store)).rejects.toMatchObject({ refusal: "logFailed" });
  await clock.advance(1_000);
  await Promise.all([write(store), write(store)]);
  await store.stop();
  const again = await opened(files.reopened());
  expect(again.run).toBe(store.identity.run);
  await again.stop();
});
