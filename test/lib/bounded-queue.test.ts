import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { BoundedQueue } from "../../src/lib/bounded-queue.ts";

let dropped: string[];
beforeEach(() => {
  dropped = [];
});

function queueOf(maxItems: number, maxBytes: number): BoundedQueue<string> {
  return new BoundedQueue({
    maxItems,
    maxBytes,
    bytesOf: ({ length }) => length,
    dropped: (item) => dropped.push(item),
  });
}

function takeAll(queue: BoundedQueue<string>): readonly string[] {
  return Array.from({ length: queue.count }, () => queue.shift() ?? "none");
}

describe("a full queue", () => {
  it("drops its oldest items", () => {
    const queue = queueOf(3, 100);
    for (const item of ["a", "b", "c", "d", "e"]) queue.add(item);
    expect([dropped, takeAll(queue)]).toEqual([
      ["a", "b"],
      ["c", "d", "e"],
    ]);
  });

  it("drops none as long as all fit", () => {
    const queue = queueOf(3, 3);
    for (const item of ["a", "b", "c"]) queue.add(item);
    expect([dropped, queue.count]).toEqual([[], 3]);
  });

  it("drops as many of the oldest as make room for a large one", () => {
    const queue = queueOf(8, 100);
    for (const item of ["a".repeat(40), "b".repeat(40), "c".repeat(90)]) queue.add(item);
    expect([dropped.length, takeAll(queue)]).toEqual([2, ["c".repeat(90)]]);
  });

  it("drops an item that never fits", () => {
    const queue = queueOf(8, 100);
    queue.add("a".repeat(101));
    queue.add("b");
    expect([dropped.length, queue.bytes, takeAll(queue)]).toEqual([1, 1, ["b"]]);
  });
});

it("an item has the number by which it is found until it leaves", () => {
  const queue = queueOf(2, 100);
  for (const item of ["a", "b", "c"]) queue.add(item);
  expect([queue.first, queue.next]).toEqual([1, 3]);
  expect([0, 1, 2, 3].map((number) => queue.at(number))).toEqual([undefined, "b", "c", undefined]);
  takeAll(queue);
  expect([queue.first, queue.shift(), queue.first]).toEqual([3, undefined, 3]);
});

it("what leaves is what was added and not dropped, in order", () => {
  const step = fc.oneof(
    { arbitrary: fc.string({ maxLength: 30 }), weight: 3 },
    { arbitrary: fc.constant(undefined), weight: 2 },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 0, max: 120 }), (steps, maxBytes) => {
      const left: (readonly [number: number, item: string])[] = [];
      const drop = (item: readonly [number, string]) => void lost.push(item);
      const lost: (readonly [number: number, item: string])[] = [];
      const queue = new BoundedQueue<readonly [number, string]>({
        ...{ maxItems: 7, maxBytes, dropped: drop },
        bytesOf: ([, { length }]) => length,
      });
      const take = () => {
        const item = queue.shift();
        if (item !== undefined) left.push(item);
      };
      const added = steps.filter((each) => each !== undefined).map((each, number) => [number, each] as const);
      for (const each of steps) {
        const item = added[queue.next];
        if (each === undefined || item === undefined) take();
        else queue.add(item);
        expect(queue.count <= 7 && queue.bytes <= maxBytes).toBe(true);
      }
      while (queue.count > 0) take();
      expect(left).toEqual(added.filter((item) => !lost.includes(item)));
      expect(queue.bytes).toBe(0);
    }),
  );
});
