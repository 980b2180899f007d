/** Requests that wait until another download ends. */

import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { AssetStreams } from "../../src/http/assets/streams.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";

const makeAnswer = (destroyed = false) => Object.assign(new EventEmitter(), { destroyed });

function makeStreams(limit: number, maxWaitMs = 60_000) {
  const running = createMetrics("test").assetStreams;
  const streams = new AssetStreams({ limit, maxWaitMs, clock: systemClock, running });
  const entered: string[] = [];
  const enter = (client: string | undefined, response = makeAnswer()) => {
    const entering = streams.enter(client, response);
    return entering.then(
      () => void entered.push(client ?? "exempt"),
      () => void entered.push(`${client ?? "exempt"} refused`),
    );
  };
  /** Ends downloads one after the other. After each, the next one can begin. */
  const leave = async (...clients: readonly (string | undefined)[]) => {
    for (const client of clients) {
      streams.leave(client);
      await new Promise(setImmediate);
    }
  };
  const isRunning = async () => (await running.get()).values[0]?.value;
  return { streams, enter, leave, entered, isRunning };
}

it("clients take turns, even if one has more requests, and each client's requests keep their order", async () => {
  const { enter, leave, entered, isRunning } = makeStreams(1);
  await enter("first");
  for (const client of ["a", "a", "a", undefined, "b", "b"]) void enter(client);
  await leave("first", "a", undefined, "b", "a", "b");
  expect(entered).toEqual(["first", "a", "exempt", "b", "a", "b", "a"]);
  expect(await isRunning()).toBe(1);
  await leave("a");
  expect(await isRunning()).toBe(0);
  await enter("last");
  expect(entered.at(-1)).toBe("last");
});

it("a client that has as many downloads as remain free waits, and others pass it", async () => {
  const { enter, leave, entered } = makeStreams(4);
  for (const client of ["a", "a", "a"]) void enter(client);
  await enter("b");
  expect(entered).toEqual(["a", "a", "b"]);
  await enter("c");
  await leave("b");
  expect(entered).toEqual(["a", "a", "b", "c"]);
  await leave("a");
  expect(entered).toEqual(["a", "a", "b", "c", "a"]);
});

it("a request stops waiting after the limit, or when its client has gone", async () => {
  const { enter, leave, entered, isRunning } = makeStreams(1, 20);
  await enter("a");
  await enter("b");
  const response = makeAnswer();
  const waits = enter("c", response);
  response.emit("close");
  await waits;
  expect(entered).toEqual(["a", "b refused", "c refused"]);
  await leave("a");
  expect(await isRunning()).toBe(0);
});

it("no request waits when davit ends, and downloads continue", async () => {
  const { streams, enter, entered, isRunning } = makeStreams(1);
  await enter("a");
  const waits = [enter("b"), enter("b"), enter(undefined)];
  streams.end();
  await Promise.all(waits);
  await enter("c");
  expect(entered.toSorted()).toEqual(["a", "b refused", "b refused", "c refused", "exempt refused"]);
  expect(await isRunning()).toBe(1);
});

it("requests without limits by client have turns of their own", async () => {
  const { enter, leave, entered } = makeStreams(1);
  await enter("first");
  for (const client of [undefined, undefined, "a", "a", undefined]) void enter(client);
  await leave("first", undefined, undefined, "a", undefined);
  expect(entered).toEqual(["first", "exempt", "exempt", "a", "exempt", "a"]);
});

it("the end of one download lets two begin if their clients may have them then", async () => {
  const { enter, leave, entered } = makeStreams(6);
  for (const client of ["a", "a", "b", "b"]) await enter(client);
  void enter("b");
  void enter("a");
  await leave("a");
  expect(entered.slice(4)).toEqual(["b", "a"]);
});

it("a request whose client has gone already does not wait", async () => {
  const { enter, leave, entered } = makeStreams(1);
  await enter("a");
  await enter("b", makeAnswer(true));
  void enter("c");
  await leave("a");
  expect(entered).toEqual(["a", "b refused", "c"]);
});
