import { describe, expect, it } from "vitest";
import { WorkQueue } from "../../src/controller/work-queue.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

function makeQueue() {
  const clock = new FakeClock();
  return { clock, queue: new WorkQueue<string>({ clock, keyOf: (item) => item }) };
}

describe("WorkQueue", () => {
  it("hands out names in order, each once, at most as many as asked for", async () => {
    const { queue } = makeQueue();
    for (const name of ["a", "b", "a", "c"]) queue.add(name);
    expect(queue.depth).toBe(3);
    expect(await queue.take(2)).toEqual(["a", "b"]);
    expect(await queue.take(2)).toEqual(["c"]);
  });

  it("waits for work", async () => {
    const { queue } = makeQueue();
    const taken = queue.take(1);
    queue.add("late");
    expect(await taken).toEqual(["late"]);
  });

  it("brings a failed name back after 5 ms, then after twice as long each time", async () => {
    const { queue, clock } = makeQueue();
    for (const delayMs of [5, 10, 20]) {
      queue.retryLater("a");
      await clock.advance(delayMs - 1);
      expect(queue.depth).toBe(0);
      await clock.advance(1);
      expect(await queue.take(1)).toEqual(["a"]);
    }
    queue.succeeded("a");
    queue.retryLater("a");
    await clock.advance(5);
    expect(queue.depth).toBe(1);
  });

  it("never waits longer than 30 s", async () => {
    const { queue, clock } = makeQueue();
    for (let failure = 0; failure < 40; failure++) queue.retryLater("a");
    await clock.advance(30_000);
    expect(clock.sleeping).toBe(0);
  });

  it("gives nothing once stopped, and leaves no timer", async () => {
    const { queue, clock } = makeQueue();
    const taken = queue.take(1);
    queue.retryLater("a");
    queue.stop();
    expect(await taken).toEqual([]);
    expect(clock.sleeping).toBe(0);
    expect(await queue.take(1)).toEqual([]);
  });
});
