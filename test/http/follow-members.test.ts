/** A follower may change from one member of a store to another. It never gets an older state than it has. */

import { afterEach, beforeEach, expect, it } from "vitest";
import { WalError } from "../../src/store/core/log-port.ts";
import { storePath } from "../../src/store/core/node.ts";
import { Store } from "../../src/store/store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { type FollowReader, follow, startFollow } from "../helpers/follow-server.ts";
import type { TestServer } from "../helpers/keys-servers.ts";
import { openSharedStore, type SharedStore } from "../helpers/shared-store.ts";
import { memoryFiles, openLog } from "../helpers/test-store.ts";

let shared: SharedStore;
let server: TestServer;
const readers: FollowReader[] = [];

beforeEach(async () => {
  shared = await openSharedStore();
  server = await startFollow(shared.store);
  await write(shared.store, "/davit/a", "1");
});
afterEach(async () => {
  for (const reader of readers.splice(0)) reader.stop();
  await server.stop();
  await shared.store.stop();
});

async function write(store: Store, path: string, value: string): Promise<void> {
  await store.submit({ kind: "set", path: storePath(path), value });
}

/** Follows from an index of the same cluster. */
async function followFrom(index: number, run = shared.store.run): Promise<FollowReader> {
  const reader = await follow(server, { cluster: shared.store.identity.clusterId, index, run });
  readers.push(reader);
  return reader;
}

it("a member that is behind a follower catches up before it answers", async () => {
  const asked = Promise.withResolvers<void>();
  const caughtUp = Promise.withResolvers<void>();
  shared.membership.barrier = () => {
    asked.resolve();
    return caughtUp.promise;
  };
  const following = followFrom(3);
  await asked.promise;
  for (const value of ["2", "3", "4"]) await write(shared.store, "/davit/a", value);
  caughtUp.resolve();
  expect(await (await following).until("heartbeat")).toMatchObject([
    { kind: "resume" },
    { kind: "put", text: "4" },
    { kind: "commit", index: 4 },
    { kind: "heartbeat", index: 4 },
  ]);
});

it("a follower whose copy is in doubt gets everything, but not from a member that is behind", async () => {
  shared.membership.barrier = async () => await write(shared.store, "/davit/a", "2");
  const reader = await follow(server, { cluster: shared.store.identity.clusterId, index: 2 });
  readers.push(reader);
  expect(await reader.until("commit")).toMatchObject([{ kind: "dump" }, { kind: "put", text: "2" }, { index: 2 }]);
});

it("a member that cannot catch up answers 503, and a follower that it is not behind as ever", async () => {
  shared.membership.barrier = () => Promise.reject(new WalError("readOnly", "etcd does not answer"));
  expect(await followFrom(2)).toMatchObject({ status: 503, retryAfter: "5" });
  expect(await followFrom(1)).toMatchObject({ status: 200 });
  readers.push(await follow(server));
  expect(readers.at(-1)?.status).toBe(200);
});

it("a member that was left behind ends its streams, since it lacks changes that their followers need", async () => {
  const reader = await followFrom(1);
  await reader.until("heartbeat");
  await shared.leaveBehind(await laterSnapshot());
  expect(await reader.until("commit")).toEqual([]);
  const again = await followFrom(1);
  expect(await again.until("commit")).toMatchObject([
    { kind: "dump" },
    { kind: "put", path: "/davit/b", text: "3" },
    { kind: "commit", index: 3 },
  ]);
});

/** The state of another member, whose index is 3. */
async function laterSnapshot() {
  const files = memoryFiles();
  const clock = new FakeClock();
  const snapshotInterval = { records: 3, bytes: 2 ** 30 };
  const other = await Store.open({ log: await openLog(files), clock, snapshotInterval });
  for (let number = 1; number <= 3; number += 1) await write(other, "/davit/b", String(number));
  await other.stop();
  const log = await openLog(files.reopened());
  const snapshot = await log.loadSnapshot();
  if (snapshot === undefined) throw new Error("No snapshot was taken");
  return snapshot;
}
