/** Merges sorted lists one item at a time, so that a caller can sort many items in steps. */

/** The next item of a list, and an iterator over the items after it. */
interface ListHead<Item> {
  readonly item: Item;
  readonly rest: Iterator<Item>;
}

/**
 * Yields all items of all lists in order.
 * @param lists each is already in the order of `compare`.
 * @param compare returns less than 0 if its first argument comes first.
 */
export function* merged<Item>(
  lists: readonly Iterable<Item>[],
  compare: (a: Item, b: Item) => number,
): Generator<Item, undefined> {
  // A binary heap: in the order, the head at n is never after those at 2n+1 and 2n+2.
  const heads = lists.flatMap((list) => headOf(list[Symbol.iterator]()) ?? []);
  heads.sort((a, b) => compare(a.item, b.item));
  for (let first = heads[0]; first !== undefined; first = heads[0]) {
    yield first.item;
    const next = headOf(first.rest) ?? heads.pop();
    if (heads.length > 0 && next !== undefined) sink(heads, next, compare);
  }
}

function headOf<Item>(rest: Iterator<Item>): ListHead<Item> | undefined {
  const { done, value } = rest.next();
  return done === true ? undefined : { item: value, rest };
}

/** Replaces the first head of the heap by a new one, and moves the new head down to its place. */
function sink<Item>(heads: ListHead<Item>[], head: ListHead<Item>, compare: (a: Item, b: Item) => number): void {
  let at = 0;
  for (;;) {
    const left = heads[2 * at + 1];
    const right = heads[2 * at + 2];
    const isRight = left !== undefined && right !== undefined && compare(right.item, left.item) < 0;
    const first = isRight ? right : left;
    if (first === undefined || compare(head.item, first.item) <= 0) break;
    heads[at] = first;
    at = 2 * at + (isRight ? 2 : 1);
  }
  heads[at] = head;
}
