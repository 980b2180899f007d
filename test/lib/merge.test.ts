import fc from "fast-check";
import { expect, it } from "vitest";
import { merged } from "../../src/store/tree/children.ts";

const byNumber = (a: number, b: number) => a - b;

it("`merged` is everything in order", () => {
  fc.assert(
    fc.property(fc.array(fc.array(fc.nat(100))), (lists) => {
      const inOrder = lists.map((list) => list.toSorted(byNumber));
      expect([...merged(inOrder, byNumber)]).toEqual(lists.flat().toSorted(byNumber));
    }),
  );
});

it("`merged` takes from its lists no more than it was asked for", () => {
  const taken: number[] = [];
  function* endless(first: number) {
    for (let item = first; ; item += 2) {
      taken.push(item);
      yield item;
    }
  }
  const items = merged([endless(0), endless(1)], byNumber);
  expect([items.next().value, items.next().value, items.next().value]).toEqual([0, 1, 2]);
  expect(taken.length).toBeLessThanOrEqual(4);
});
