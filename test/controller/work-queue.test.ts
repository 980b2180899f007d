import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WorkQueue } from "../../src/controller/core/work-queue.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

function makeQueue() {
  const clock = new FakeClock();
  const metrics = createMetrics("test");
  const queue = new WorkQueue<string>({ clock, keyOf: (item) => item, name: "objects", metrics });
  return { clock, queue, metrics };
}

interface Step {
  readonly kind: "add" | "addTogether" | "take";
  readonly names: readonly string[];
  readonly limit: number;
}

const steps = fc.record<Step>({
  kind: fc.constantFrom("add", "addTogether", "take"),
  names: fc.array(fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h"), { maxLength: 5 }),
  limit: fc.integer({ min: 1, max: 4 }),
});

/** The names that wait, and whether they were added together. Each `take` looks at all of them. */
class PlainQueue {
  readonly waiting = new Map<string, boolean>();

  add(added: readonly string[], isReported: boolean): void {
    for (const name of added) this.waiting.set(name, isReported || this.waiting.get(name) === true);
  }

  take(limit: number): readonly string[] {
    let left = limit;
    const taken = [...this.waiting].filter(([, isReported]) => isReported || left-- > 0).map(([name]) => name);
    for (const name of taken) this.waiting.delete(name);
    return taken;
  }
}

async function playBeside(all: readonly Step[]): Promise<void> {
  const { queue } = makeQueue();
  const plain = new PlainQueue();
  for (const { kind, names, limit } of all) {
    plain.add(names, kind === "addTogether");
    if (kind === "addTogether") queue.addTogether(names);
    else for (const name of names) queue.add(name);
    const expected = kind === "take" ? plain.take(limit) : [];
    if (expected.length > 0) expect(await queue.take(limit)).toEqual(expected);
    expect(queue.depth).toBe(plain.waiting.size);
  }
}

describe("WorkQueue", () => {
  it("hands out names in order, each once, at most as many as asked for", async () => {
    const { queue } = makeQueue();
    for (const name of ["a", "b", "a", "c"]) queue.add(name);
    expect(queue.depth).toBe(3);
    expect(await queue.take(2)).toEqual(["a", "b"]);
    expect(await queue.take(2)).toEqual(["c"]);
  });

  it("hands out all names that were told together, whatever it was asked for", async () => {
    const { queue } = makeQueue();
    for (const name of ["a", "b", "c", "d"]) queue.add(name);
    queue.addTogether(["d", "e", "f", "g"]);
    expect(await queue.take(1)).toEqual(["a", "d", "e", "f", "g"]);
    queue.add("e");
    expect(await queue.take(1)).toEqual(["b"]);
    expect(await queue.take(5)).toEqual(["c", "e"]);
  });

  it("hands out the same names in the same order as a queue that looks at every name", async () => {
    await fc.assert(fc.asyncProperty(fc.array(steps, { maxLength: 60 }), playBeside));
  });

  it("brings names that failed together back together", async () => {
    const { queue, clock } = makeQueue();
    queue.retryLater(["a", "b", "c"]);
    await clock.advance(5);
    expect(await queue.take(1)).toEqual(["a", "b", "c"]);
  });

  it("knows since when a name is unfinished: while it waits, is worked on, and has failed", async () => {
    const { queue, clock } = makeQueue();
    expect(queue.unfinishedSinceMs).toBeUndefined();
    await clock.advance(10);
    queue.add("a");
    await clock.advance(10);
    queue.add("b");
    queue.add("a");
    expect(queue.unfinishedSinceMs).toBe(10);
    expect(await queue.take(1)).toEqual(["a"]);
    await clock.advance(10);
    expect(queue.unfinishedSinceMs).toBe(10);
    queue.retryLater(["a"]);
    expect(await queue.take(1)).toEqual(["b"]);
    expect(queue.unfinishedSinceMs).toBe(10);
    queue.succeeded("b");
    await clock.advance(10);
    expect(await queue.take(1)).toEqual(["a"]);
    expect(queue.unfinishedSinceMs).toBe(10);
    queue.succeeded("a");
    void queue.take(1);
    expect(queue.unfinishedSinceMs).toBeUndefined();
    queue.add("c");
    expect(queue.unfinishedSinceMs).toBe(40);
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
      queue.retryLater(["a"]);
      await clock.advance(delayMs - 1);
      expect(queue.depth).toBe(0);
      await clock.advance(1);
      expect(await queue.take(1)).toEqual(["a"]);
    }
    queue.succeeded("a");
    queue.retryLater(["a"]);
    await clock.advance(5);
    expect(queue.depth).toBe(1);
  });

  it("never waits longer than 30 s", async () => {
    const { queue, clock } = makeQueue();
    for (let failure = 0; failure < 40; failure++) queue.retryLater(["a"]);
    await clock.advance(30_000);
    expect(clock.sleeping).toBe(0);
  });

  it("gives nothing once stopped, and leaves no timer", async () => {
    const { queue, clock } = makeQueue();
    const taken = queue.take(1);
    queue.retryLater(["a"]);
    queue.stop();
    expect(await taken).toEqual([]);
    expect(clock.sleeping).toBe(0);
    expect(await queue.take(1)).toEqual([]);
  });

  it("brings names back together that failed together, after the delay of the one that failed most often", async () => {
    const { queue, clock } = makeQueue();
    queue.retryLater(["a"]);
    await clock.advance(5);
    await queue.take(1);
    queue.retryLater(["a", "b"]);
    expect(clock.sleeping).toBe(1);
    await clock.advance(9);
    expect(queue.depth).toBe(0);
    await clock.advance(1);
    expect(await queue.take(2)).toEqual(["a", "b"]);
  });

  it("tries no more than 100 times at once and then 10 times a second, whatever fails; new names do not wait", async () => {
    const { queue, clock } = makeQueue();
    for (let at = 0; at < 120; at++) queue.retryLater([`failed${at}`]);
    await clock.advance(5);
    expect(await queue.take(200)).toHaveLength(100);
    await clock.advance(995);
    expect(queue.depth).toBe(10);
    queue.add("new");
    expect(queue.depth).toBe(11);
    await clock.advance(1_000);
    expect(queue.depth).toBe(21);
    // Ten seconds later the bucket is full again.
    await clock.advance(10_000);
    await queue.take(200);
    for (let at = 0; at < 100; at++) queue.retryLater([`again${at}`]);
    await clock.advance(5);
    expect(queue.depth).toBe(100);
  });

  it("holds each name once, however often it is added", () => {
    const { queue } = makeQueue();
    for (let at = 0; at < 100_000; at++) queue.add(`name${at % 3}`);
    expect(queue.depth).toBe(3);
  });

  it("measures waiting and working", async () => {
    const { queue, clock, metrics } = makeQueue();
    queue.add("a");
    queue.add("b");
    queue.add("c");
    await clock.advance(2_000);
    await queue.take(2);
    await clock.advance(3_000);
    queue.measure();
    const text = await metrics.text();
    for (const line of [
      'workqueue_depth{name="objects"} 1',
      'workqueue_adds_total{name="objects"} 3',
      'workqueue_retries_total{name="objects"} 0',
      'workqueue_queue_duration_seconds_sum{name="objects"} 4',
      'workqueue_unfinished_work_seconds{name="objects"} 6',
      'workqueue_longest_running_processor_seconds{name="objects"} 3',
    ]) {
      expect(text).toContain(`${line}\n`);
    }
    await queue.take(1);
    expect(await metrics.text()).toContain('workqueue_work_duration_seconds_sum{name="objects"} 3\n');
  });
});
