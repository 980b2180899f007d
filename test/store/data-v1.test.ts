/**
 * A data directory of format 1, as davit wrote it before its first release: every later davit must open it, so
 * `data-v1/` is never written again. It was made once, by this script and the options of `openStore` that it names:
 *
 *   const clock = new FakeClock(1_700_000_000_000);
 *   const options = { clock, maxSegmentBytes: 900, snapshotInterval: { records: 8, bytes: 2 ** 30 }, files: diskFiles };
 *   run 1: set /app/1 to /app/12 to "value N", POST below /queue twice, a batch of set /davit/synced "{}" and delete
 *          /app/12, update /app/1 to "é☃\u0000", refused: create /app/1; stop
 *   run 2: set /lease with ttl 60, directory /leases with ttl 3600 and /leases/x in it, refresh of /lease with ttl 90,
 *          compare and swap of /app/2, compare and delete of /app/3; the clock goes on by 91 s, so that /lease expires;
 *          recursive delete of /queue; no stop: the newest segment ends without a seal, and 20 bytes of a torn write
 *
 * A turn of the event loop is left between two commands, so that snapshots are written. There are two of them, and the
 * segments from the older one on.
 */

import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { diskFiles } from "../../src/lib/files/files.ts";
import { storePath } from "../../src/store/core/node.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { memoryFiles, openStore } from "../helpers/test-store.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "davit-v1-"));
  await cp(join(import.meta.dirname, "data-v1"), directory, { recursive: true });
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

const open = () => openStore(memoryFiles(), { directory, files: diskFiles, clock: new FakeClock(1_700_000_100_000) });

const nodesOf = (store: Store) =>
  [...store.dump()]
    .map(({ path, value, createdIndex, modifiedIndex, ttlSeconds }) =>
      [path, value ?? "(directory)", createdIndex, modifiedIndex, ttlSeconds ?? "-"].join(" "),
    )
    .toSorted();

const nodes = [
  "/ (directory) 0 0 -",
  "/app (directory) 1 1 -",
  "/app/1 é☃\u0000 1 17 -",
  "/app/10 value 10 10 10 -",
  "/app/11 value 11 11 11 -",
  "/app/2 swapped 2 22 -",
  "/app/4 value 4 4 4 -",
  "/app/5 value 5 5 5 -",
  "/app/6 value 6 6 6 -",
  "/app/7 value 7 7 7 -",
  "/app/8 value 8 8 8 -",
  "/app/9 value 9 9 9 -",
  "/davit (directory) 15 15 -",
  "/davit/synced {} 15 15 -",
  "/leases (directory) 19 19 3600",
  "/leases/x y 20 20 -",
];

const events = [
  ...Array.from({ length: 12 }, (_, number) => `${number + 1} set /app/${number + 1}`),
  "13 create /queue/00000000000000000013",
  "14 create /queue/00000000000000000014",
  "15 set /davit/synced",
  "16 delete /app/12",
  "17 update /app/1",
  "18 set /lease",
  "19 set /leases",
  "20 set /leases/x",
  "21 set /lease",
  "22 compareAndSwap /app/2",
  "23 compareAndDelete /app/3",
  "24 expire /lease",
  "25 delete /queue",
];

async function expectAll(): Promise<void> {
  const store = await open();
  expect(nodesOf(store)).toEqual(nodes);
  expect(store.events.map(({ action, node }) => `${node.modifiedIndex} ${action} ${node.path}`)).toEqual(events);
  expect(store.events[20]).toMatchObject({ isRefresh: true, prevNode: { value: "held", ttlSeconds: 60 } });
  expect(store.indexes).toEqual({ storeIndex: 25, raftIndex: 28, raftTerm: 4 });
  expect(store.identity).toMatchObject({ clusterId: "cd657c12635bd82d", memberId: "ffb8e094089586ee" });
  await store.submit({ kind: "set", path: storePath("/after"), value: "x" });
  expect(store.indexes.storeIndex).toBe(26);
  await store.stop();
}

it("a directory of format 1 opens with everything that was in it, and is written on", async () => {
  await expectAll();
});

it("a directory of format 1 opens from its older snapshot, too", async () => {
  const newest = (await readdir(directory)).filter((name) => name.endsWith(".snapshot")).toSorted()[1];
  await rm(join(directory, newest ?? ""));
  await expectAll();
});
