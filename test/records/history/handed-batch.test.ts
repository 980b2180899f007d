/** Batches of requests that a follower hands to the writer's history: taken once, at a limited rate, strictly read. */

import { beforeEach, describe, expect, it } from "vitest";
import { nextTurn } from "../../../src/lib/slices.ts";
import {
  decodeHistoryBatch,
  encodeHistoryBatch,
  type HistoryBatch,
  maxBatchRequests,
} from "../../../src/model/history-batch.ts";
import type { JsonValue } from "../../../src/model/json.ts";
import { labelsFromQuery } from "../../../src/model/labels/labels.ts";
import { HandedIntake } from "../../../src/records/history/handed-intake.ts";
import type { SeenRequest } from "../../../src/records/history/request.ts";
import { encodeRequest } from "../../../src/records/history/request-text.ts";
import { handed, seen, startHistory } from "./seen-requests.ts";

const one = "mac=52-54-00-00-00-01";

describe("a batch", () => {
  const run = "0123456789abcdef";
  let history: ReturnType<typeof startHistory>["history"];
  let clock: ReturnType<typeof startHistory>["clock"];
  let intake: HandedIntake;
  beforeEach(async () => {
    ({ history, clock } = startHistory());
    await clock.advance(100_000);
    intake = new HandedIntake({ history, clock });
    await history.load();
  });

  function batchOf(entries: readonly SeenRequest[], first = 0, dropped = 0): HistoryBatch | undefined {
    const agoMs = entries.map((entry) => 50_000 - entry.startedMs);
    const texts = entries.map((entry) => encodeRequest(entry));
    return decodeHistoryBatch(encodeHistoryBatch({ via: "pod-1", run, first, dropped, agoMs }, texts));
  }

  async function take(batch: HistoryBatch | undefined): Promise<number> {
    if (batch === undefined) throw new Error("the batch cannot be read");
    return await intake.take(batch, clock.monotonicMs());
  }

  const shown = async () => {
    const [machine] = (await history.current()).find(labelsFromQuery(one), 1);
    return machine?.requests.map(({ endpoint }) => endpoint);
  };

  it("is the same at the writer, whose clock is another one", async () => {
    const request = handed(
      "assets",
      {
        startedMs: 40_000,
        durationMs: 7,
        path: "/assets/é",
        isHead: true,
        isCut: true,
        ofBytes: undefined,
        ...{ status: 404, refusal: "noGroup", group: "lab/web" },
      },
      `${one}&hostname=%1b%e2%80%ae`,
    );
    expect(await take(batchOf([request]))).toBe(1);
    const [machine] = (await history.current()).find(labelsFromQuery(one), 1);
    const { startedMs, profile: _profile, script: _script, ...same } = request;
    expect(machine?.requests[0]).toMatchObject({
      ...same,
      lastStartedAtMs: clock.nowMs() - 10_000,
    });
  });

  it("is taken once, although its answer was lost", async () => {
    const requests = ["e0", "e1", "e2"].map((endpoint, number) => handed(endpoint, { startedMs: number }, one));
    expect(await take(batchOf(requests.slice(0, 2)))).toBe(2);
    expect(await take(batchOf(requests))).toBe(3);
    expect(await take(batchOf(requests.slice(1), 1))).toBe(2);
    expect(await shown()).toEqual(["e0", "e1", "e2"]);
  });

  it("is taken once, although it comes again while it is added", async () => {
    const batch = batchOf(Array.from({ length: 200 }, (_, number) => handed(`e${number}`, { startedMs: number }, one)));
    expect(await Promise.all([take(batch), take(batch)])).toEqual([200, 200]);
    expect(await shown()).toHaveLength(64);
    expect(await shown()).toEqual(Array.from({ length: 64 }, (_, number) => `e${number + 136}`));
  });

  it("is taken in part, if followers send more than the writer has time for", async () => {
    const batch = batchOf(Array.from({ length: 512 }, (_, number) => handed("ipxe", { startedMs: number }, one)));
    const taken: number[] = [];
    for (let first = 0; first < 512 * 10; first += 512) {
      taken.push(await take(batch && { ...batch, first }));
    }
    expect(taken.reduce((sum, count) => sum + count, 0)).toBe(2_048);
    expect(taken.at(-1)).toBe(0);
    await clock.advance(1_000);
    expect(await take(batch && { ...batch, first: 512 * 4 })).toBe(512);
  });

  it("reports how many requests its follower has dropped, each once", async () => {
    const missed: number[] = [];
    for (const [first, dropped] of [
      [0, 0],
      [1, 3],
      [1, 3],
      [2, 10],
      [0, 3],
    ]) {
      await take(batchOf([handed("ipxe", { startedMs: 0 }, one)], first, dropped));
      missed.push((await history.current()).missed);
    }
    expect(missed).toEqual([0, 3, 3, 10, 10]);
  });

  it("is not taken by a davit that stops, whose journal may be written", async () => {
    const entries = Array.from({ length: 200 }, (_, number) => handed(`e${number}`, { startedMs: number }, one));
    const taking = take(batchOf(entries));
    await history.stop();
    expect(await taking).toBeLessThan(200);
    expect(await take(batchOf(entries))).toBe(0);
  });

  it("waits until the requests of earlier runs were read", async () => {
    const earlier = startHistory();
    const waiting = new HandedIntake({ history: earlier.history, clock: earlier.clock });
    const batch = batchOf([handed("ipxe", { startedMs: 0 }, one)]);
    expect(batch && (await waiting.take(batch, 0))).toBe(0);
    await nextTurn();
    expect(batch && (await waiting.take(batch, 0))).toBe(1);
  });

  const sound: readonly JsonValue[] = [
    1,
    "10.0.0.7",
    "ipxe",
    null,
    0,
    200,
    null,
    "lab/web",
    100,
    100,
    { mac: "52:54:00:00:00:01" },
    null,
    "lab/flatcar",
    "0".repeat(64),
  ];
  const place = {
    duration: 0,
    address: 1,
    endpoint: 2,
    path: 3,
    marks: 4,
    status: 5,
    reason: 6,
    group: 7,
    sent: 8,
    of: 9,
    labels: 10,
    profile: 12,
    script: 13,
  };
  const changed = (name: keyof typeof place, value: JsonValue): JsonValue => sound.with(place[name], value);
  const raw = (requests: readonly JsonValue[], more: object = {}) =>
    JSON.stringify({ via: "pod-1", run, first: 0, dropped: 0, agoMs: requests.map(() => 1_000), requests, ...more });

  it.each<[what: string, request: JsonValue]>([
    ["no array", {}],
    ["null", null],
    ["too few values", sound.slice(0, 5)],
    ["a negative duration", changed("duration", -1)],
    ["a text as a number", changed("status", "200")],
    ["a status of two digits", changed("status", 20)],
    ["a status that no answer has", changed("status", 1_000)],
    ["a status with a fraction", changed("status", 200.5)],
    ["an address of another form", changed("address", "\u001b[2J")],
    ["an endpoint with a line break", changed("endpoint", "ipxe\n")],
    ["a long endpoint", changed("endpoint", "e".repeat(65))],
    ["a path with an escape", changed("path", "/\u001b[2J")],
    ["a long path", changed("path", `/${"p".repeat(512)}`)],
    ["a reason with a line break", changed("reason", "held\n")],
    ["a Group without a namespace", changed("group", "web")],
    ["a Group with a line break", changed("group", "lab/web\n")],
    ["a Profile without a namespace", changed("profile", "flatcar")],
    ["a digest of another form", changed("script", "abc")],
    ["negative bytes", changed("sent", -1)],
    ["a negative length", changed("of", -1)],
    ["a label that is not reserved", changed("labels", { mac: "52:54:00:00:00:01", token: "secret" })],
    ["a long label", changed("labels", { mac: "52:54:00:00:00:01", hostname: "n".repeat(254) })],
    ["a MAC address of another form", changed("labels", { mac: "52-54-00-00-00-01" })],
    ["a UUID in upper case", changed("labels", { uuid: "A" })],
  ])("has a request left out with %s", async (_what, request) => {
    const batch = decodeHistoryBatch(raw([request, sound]));
    expect(await take(batch)).toBe(2);
    expect((await history.current()).recent(10).flatMap(({ requests }) => requests)).toHaveLength(1);
  });

  it.each([-1, 86_400_001, 1e300])("has a request left out that began %d ms ago", async (agoMs) => {
    expect(await take(decodeHistoryBatch(raw([sound], { agoMs: [agoMs] })))).toBe(1);
    expect((await history.current()).recent(10)).toEqual([]);
  });

  it.each([
    [4 * 7 + 1, 7],
    [4 * 2 ** 32, 0],
    [-4, 0],
    [1e300, 0],
  ])("has marks of %d, whose boot has the number %d", async (marks, boot) => {
    await take(decodeHistoryBatch(raw([changed("marks", marks)])));
    expect((await history.current()).recent(1)[0]?.requests[0]?.boot).toBe(boot);
  });

  it("has no request that ends after now", async () => {
    expect(await take(decodeHistoryBatch(raw([changed("duration", 80_000_000)])))).toBe(1);
    expect((await history.current()).recent(1)[0]?.lastSeenAtMs).toBe(clock.nowMs());
  });

  it.each([
    "",
    "[]",
    "{}",
    raw([sound], { via: "a\u001bb" }),
    raw([sound], { via: "" }),
    raw([sound], { via: "n".repeat(254) }),
    raw([sound], { run: "run" }),
    raw([sound], { run: "a".repeat(65) }),
    raw([sound], { first: -1 }),
    raw([sound], { first: 1.5 }),
    raw([sound], { first: "0" }),
    raw([sound], { dropped: -1 }),
    raw([sound], { dropped: null }),
    raw([sound], { agoMs: [] }),
    raw([sound], { agoMs: ["1"] }),
    raw([sound], { agoMs: 1 }),
    raw([sound], { requests: {} }),
    raw(Array(maxBatchRequests + 1).fill(sound)),
  ])("is refused as a whole: %.60s", (text) => {
    expect(decodeHistoryBatch(text)).toBeUndefined();
  });
});

it("a history shows the sightings of its own requests and of followers, which name no other sender", async () => {
  const shown: (readonly [endpoint: string, isOwn: boolean])[] = [];
  const { history, record } = startHistory(
    {},
    { sighted: ({ endpoint }, isOwn) => void shown.push([endpoint, isOwn]) },
  );
  record(seen("ipxe"), one);
  await history.load();
  await history.current();
  history.add({ ...handed("ignition", {}, one), via: undefined });
  expect(shown).toEqual([
    ["ipxe", true],
    ["ignition", false],
  ]);
});

it("a history hands on its own requests, with their reserved labels, and no follower's", async () => {
  const handedOn: (readonly [startedMs: number, text: string])[] = [];
  const handOn = { add: (startedMs: number, text: string) => void handedOn.push([startedMs, text]) };
  const { history, record } = startHistory({}, { handOn });
  const request = seen("ipxe", { startedMs: 7, status: 503, refusal: "held" });
  record(request, `${one}&token=secret`);
  await history.current();
  history.add(handed("ignition", {}, one));
  await history.current();
  const { query: _, ...plain } = request;
  expect(handedOn).toEqual([[7, encodeRequest({ ...plain, via: undefined, labels: labelsFromQuery(one) })]]);
});
