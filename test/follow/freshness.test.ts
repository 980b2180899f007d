/** Since when a follower's copy is proven, by what the store says of itself. */

import { afterEach, beforeEach, expect, it } from "vitest";
import { StoreFollower } from "../../src/follow/follow.ts";
import type { FollowLine } from "../../src/model/follow-line.ts";
import { encodeDocument, syncedPath } from "../../src/model/objects/documents.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { silentLog } from "../helpers/test-store.ts";
import { FakeStore } from "./fake-store.ts";

let clock: FakeClock;
let store: FakeStore;
let follower: StoreFollower;

beforeEach(async () => {
  clock = new FakeClock();
  store = await FakeStore.start();
  const credentials = async () => ({});
  follower = new StoreFollower({ urls: [store.url], credentials, clock, random: () => 0, log: silentLog });
  await clock.advance(100_000);
  await follower.start();
});

afterEach(async () => {
  await follower.stop();
  await store.stop();
});

const synced = (complete: boolean): FollowLine => {
  const text = encodeDocument({ source: "directory", at: "2026-01-01T00:00:00.000Z", revision: "r", complete });
  return { kind: "put", path: syncedPath, text };
};
const dump = (nowMs?: number, complete = true): readonly FollowLine[] => [
  { kind: "dump", cluster: "c", ...(nowMs !== undefined && { nowMs }) },
  synced(complete),
  { kind: "commit", index: 1, run: "a" },
];
const beat = (index: number, times: { readonly nowMs?: number; readonly provenMs?: number }): FollowLine => ({
  kind: "heartbeat",
  index,
  run: "a",
  ...times,
});
const provenAtMs = () => follower.status.provenAtMs;

it("is what the store's source had said when the store was asked, on the follower's clock", async () => {
  const connection = await store.next();
  connection.say(...dump(5_000));
  await expect.poll(() => follower.status.index).toBe(1);
  expect(provenAtMs()).toBeUndefined();
  connection.say(beat(2, { nowMs: 5_000, provenMs: 3_000 }));
  await expect.poll(provenAtMs).toBe(98_000);
  await clock.advance(10_000);
  connection.say(beat(3, { nowMs: 15_000, provenMs: 14_000 }));
  await expect.poll(provenAtMs).toBeCloseTo(109_000, -2);
});

it("is not what comes late of a connection that holds lines back", async () => {
  const connection = await store.next();
  connection.say(...dump(5_000), beat(2, { nowMs: 5_000, provenMs: 5_000 }));
  await expect.poll(provenAtMs).toBe(100_000);
  await clock.advance(25_000);
  connection.say(beat(3, { nowMs: 8_000, provenMs: 8_000 }));
  await expect.poll(() => follower.status.index).toBe(3);
  expect(provenAtMs()).toBeLessThan(103_100);
});

it("is measured anew by a connection that replaces the old one, long before clocks drift apart", async () => {
  await store.next();
  await follower.stop();
  const patient = { credentials: async () => ({}), clock, random: () => 0, log: silentLog };
  follower = new StoreFollower({ ...patient, urls: [store.url], limits: { silenceMs: 86_400_000 } });
  const askedAtMs = clock.monotonicMs();
  await follower.start();
  const first = await store.next();
  first.say(...dump(5_000), beat(2, { nowMs: 5_000, provenMs: 5_000 }));
  await expect.poll(provenAtMs).toBe(askedAtMs);
  await clock.advance(14 * 60_000);
  expect([first.response.destroyed, follower.status.isConnected]).toEqual([false, true]);
  await clock.advance(60_000);
  await expect.poll(() => follower.status.isConnected).toBe(false);
  await clock.advance(1_000);
  const second = await store.next();
  expect(second.target).toContain("cluster=c&after=2&run=a");
  second.say({ kind: "resume", cluster: "c", nowMs: 906_000 }, beat(2, { nowMs: 906_000, provenMs: 905_000 }));
  await expect.poll(provenAtMs).toBeGreaterThan(clock.monotonicMs() - 3_000);
  expect(provenAtMs()).toBeLessThanOrEqual(askedAtMs + 900_000);
});

it("makes a follower of several members go on at another one, when it becomes too old", async () => {
  const other = await FakeStore.start();
  await (await store.next()).response.destroy();
  await follower.stop();
  const options = { credentials: async () => ({}), clock, random: () => 0, log: silentLog };
  follower = new StoreFollower({ ...options, urls: [store.url, other.url], unprovenMs: 20_000 });
  await follower.start();
  const first = await store.next();
  first.say(...dump(5_000), beat(2, { nowMs: 5_000, provenMs: 5_000 }));
  await expect.poll(() => follower.status.index).toBe(2);
  await clock.advance(15_000);
  first.say(beat(3, { nowMs: 20_000, provenMs: 5_000 }));
  await expect.poll(() => follower.status.index).toBe(3);
  expect(follower.status.isConnected).toBe(true);
  await clock.advance(6_000);
  first.say(beat(4, { nowMs: 26_000, provenMs: 5_000 }));
  await expect.poll(() => follower.status.isConnected).toBe(false);
  await clock.advance(1_000);
  const second = await other.next();
  expect(second.target).toContain("cluster=c&after=4&run=a");
  // It gets as much time.
  second.say({ kind: "resume", cluster: "c", nowMs: 0 }, beat(5, { nowMs: 0 }));
  await expect.poll(() => follower.status.index).toBe(5);
  expect(follower.status.isConnected).toBe(true);
  await follower.stop();
  await other.stop();
});

it("stays while the store has no proof, and is void with another copy", async () => {
  const first = await store.next();
  first.say(...dump(5_000), beat(2, { nowMs: 5_000, provenMs: 5_000 }), beat(3, { nowMs: 6_000 }));
  await expect.poll(() => follower.status.index).toBe(3);
  expect(provenAtMs()).toBe(100_000);
  first.response.end();
  await expect.poll(() => follower.status.isConnected).toBe(false);
  await clock.advance(5_000);
  const second = await store.next();
  second.say(...dump(0), beat(4, { nowMs: 0 }));
  await expect.poll(() => follower.status.index).toBe(4);
  expect(provenAtMs()).toBeUndefined();
});

it("is never known of a store that says no times", async () => {
  const connection = await store.next();
  connection.say(...dump(), beat(2, {}));
  await expect.poll(() => follower.status.index).toBe(2);
  expect(provenAtMs()).toBeUndefined();
});

it("is not known while the store knows less than the copy", async () => {
  const first = await store.next();
  first.say(...dump(5_000), beat(2, { nowMs: 5_000, provenMs: 5_000 }));
  await expect.poll(provenAtMs).toBe(100_000);
  first.response.end();
  await expect.poll(() => follower.status.isConnected).toBe(false);
  await clock.advance(5_000);
  const second = await store.next();
  second.say(...dump(0, false), beat(4, { nowMs: 0, provenMs: 0 }));
  await expect.poll(() => follower.status.isWithheld).toBe(true);
  expect(provenAtMs()).toBeUndefined();
});

it("is not what comes after this computer was suspended, until the store was asked again", async () => {
  const first = await store.next();
  first.say(...dump(5_000), beat(2, { nowMs: 5_000, provenMs: 5_000 }));
  await expect.poll(provenAtMs).toBe(100_000);
  // An hour passes, and the monotonic clock stands still. Then a line arrives that the store sent before it slept.
  clock.stepWallClock(3_600_000);
  await clock.advance(20_000);
  first.say(beat(3, { nowMs: 24_000, provenMs: 24_000 }));
  await expect.poll(() => follower.status.isConnected).toBe(false);
  await clock.advance(1_000);
  const second = await store.next();
  expect(provenAtMs()).toBe(100_000);
  second.say(...dump(3_620_000), beat(4, { nowMs: 3_620_000, provenMs: 3_619_000 }));
  await expect.poll(provenAtMs).toBeGreaterThanOrEqual(119_000);
});
