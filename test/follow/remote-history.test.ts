/** A follower hands its history on: in bounded batches, behind everything else, and to no earlier version. */

import { afterEach, beforeEach, expect, it } from "vitest";
import { RemoteHistory } from "../../src/follow/remote-history.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { nextTurn } from "../../src/lib/slices.ts";
import {
  decodeHistoryBatch,
  type HistoryBatch,
  historyPath,
  maxBatchBytes,
  maxBatchRequests,
} from "../../src/model/history-batch.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const run = "0123456789abcdef";
let clock: FakeClock;
let metrics: ReturnType<typeof createMetrics>;
let isBusy: boolean;
/** How many requests of a batch the writer takes; undefined if it does not answer. */
let takes: number | undefined;
let sent: HistoryBatch[];
let largest: number;
let history: RemoteHistory;
/** Runs while the writer has a batch. */
let meanwhile: () => void;

beforeEach(() => {
  [clock, isBusy, takes, sent, largest, meanwhile] = [
    new FakeClock(),
    false,
    Number.POSITIVE_INFINITY,
    [],
    0,
    () => undefined,
  ];
  metrics = createMetrics("1");
  const askBy = async (path: string, textOf: () => string) => {
    expect(path).toBe(historyPath);
    const text = textOf();
    const batch = decodeHistoryBatch(text);
    if (batch === undefined) throw new Error("a batch can be read");
    sent.push(batch);
    largest = Math.max(largest, Buffer.byteLength(text));
    meanwhile();
    return takes === undefined ? undefined : JSON.stringify({ taken: Math.min(takes, batch.requests.length) });
  };
  history = new RemoteHistory({ writers: { askBy }, isBusy: () => isBusy, clock, via: "pod-1", run, metrics });
  history.start();
});
afterEach(() => history.stop());

async function pass(ms: number): Promise<void> {
  await clock.advance(ms);
  await nextTurn();
}

const add = (number: number, padding = "") => history.add(clock.monotonicMs(), JSON.stringify([number, padding]));
const numbersOf = (batches: readonly HistoryBatch[]) =>
  batches.map(({ requests }) => requests.map((request) => (request as readonly number[])[0]));
const droppedCount = async () =>
  Number(/^davit_follow_history_dropped_total (\d+)$/m.exec(await metrics.text())?.[1] ?? Number.NaN);

it("sends requests once, with their ages and its name", async () => {
  add(1);
  await pass(500);
  add(2);
  await pass(1_500);
  expect(sent).toEqual([
    {
      via: "pod-1",
      run,
      first: 0,
      dropped: 0,
      agoMs: [2_000, 1_500],
      requests: [
        [1, ""],
        [2, ""],
      ],
    },
  ]);
  await pass(10_000);
  add(3);
  await pass(2_000);
  expect(sent.slice(1)).toMatchObject([{ first: 2, requests: [[3, ""]] }]);
});

it("sends nothing while machines wait for permits", async () => {
  isBusy = true;
  add(1);
  await pass(10_000);
  expect(sent).toEqual([]);
  isBusy = false;
  await pass(2_000);
  expect(sent).toHaveLength(1);
});

it("sends few at a time, and drops and counts the oldest of too many", async () => {
  const [most, more] = [16_384, 100];
  expect(await droppedCount()).toBe(0);
  for (let number = 0; number < most + more; number++) add(number);
  expect(await droppedCount()).toBe(more);
  for (let turn = 0; turn < 100; turn++) await pass(2_000);
  const numbers = numbersOf(sent).flat();
  expect(numbers).toEqual(Array.from({ length: most }, (_, at) => at + more));
  expect(sent[0]?.dropped).toBe(more);
  expect(Math.max(...sent.map(({ requests }) => requests.length))).toBe(maxBatchRequests);
  expect(await droppedCount()).toBe(more);
});

it("sends no more bytes than the writer reads, and keeps no more than its limit", async () => {
  const padding = "p".repeat(2_000);
  for (let number = 0; number < 4_000; number++) add(number, padding);
  const dropped = await droppedCount();
  expect(dropped).toBeGreaterThan(1_800);
  expect(dropped).toBeLessThan(2_200);
  for (let turn = 0; turn < 100; turn++) await pass(2_000);
  expect(numbersOf(sent).flat()).toEqual(Array.from({ length: 4_000 - dropped }, (_, at) => at + dropped));
  expect(largest).toBeGreaterThan(maxBatchBytes / 2);
  expect(largest).toBeLessThanOrEqual(maxBatchBytes);
});

it("sends the rest of a batch again, of which the writer had time for a part", async () => {
  for (const number of [1, 2, 3]) add(number);
  takes = 2;
  await pass(2_000);
  takes = 0;
  await pass(2_000);
  takes = 9;
  await pass(2_000);
  await pass(2_000);
  expect(numbersOf(sent)).toEqual([[1, 2, 3], [3], [3]]);
  expect(sent.map(({ first }) => first)).toEqual([0, 2, 2]);
});

it("asks a writer that takes none, such as one of an earlier version, once a minute", async () => {
  takes = undefined;
  add(1);
  await pass(2_000);
  await pass(59_000);
  expect(sent).toHaveLength(1);
  takes = 1;
  await pass(1_000);
  // The same number, by which the writer recognizes it.
  expect(sent.map(({ first, agoMs }) => [first, agoMs])).toEqual([
    [0, [2_000]],
    [0, [62_000]],
  ]);
});

it("keeps its place when it drops requests while the writer has them", async () => {
  for (let number = 0; number < 3; number++) add(number);
  meanwhile = () => {
    meanwhile = () => undefined;
    for (let number = 3; number < 16_388; number++) add(number);
  };
  await pass(2_000);
  await pass(2_000);
  expect(sent.slice(0, 2).map(({ first, requests }) => [first, (requests[0] as readonly number[])[0]])).toEqual([
    [0, 0],
    [4, 4],
  ]);
});

it("sends what waits when it stops", async () => {
  for (let number = 0; number < 600; number++) add(number);
  await history.stop();
  expect(numbersOf(sent).flat()).toHaveLength(600);
});

it.each([undefined, 0])("stops although the writer takes none: %s", async (taken) => {
  takes = taken;
  add(1);
  await history.stop();
  expect(sent).toHaveLength(1);
});
