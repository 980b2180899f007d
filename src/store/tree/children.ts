/**
 * Collects the children of a directory in steps, and sorts them in parts: sorting a million in one step takes a second.
 */

import { compareBytes } from "../../lib/order.ts";
import type { TreeNode } from "./tree-node.ts";

export type Child = readonly [name: string, node: TreeNode];

export interface ChildQuery {
  /**
   * If true, children are sorted by the bytes of their names. Otherwise they keep the order in which they were
   * collected.
   */
  readonly sorted?: boolean;
  /** Leaves out the children for which it returns false. */
  readonly accepts?: (name: string, node: TreeNode) => boolean;
}

/**
 * A part of the children. Names and nodes are in separate lists: in a list of pairs the garbage collector would move
 * every pair.
 */
interface Run {
  readonly names: string[];
  readonly nodes: TreeNode[];
}

// The most names in a `Run`. Sorting this many takes a millisecond or two.
const runLength = 2_048;
// Collecting this many names takes a microsecond or two.
const namesPerStep = 32;

export class CollectedChildren {
  readonly #query: ChildQuery;
  /** For a sorted query, every run except the last one is sorted. */
  readonly #runs: Run[] = [];
  #last: Run = { names: [], nodes: [] };
  #looked = 0;

  constructor(query: ChildQuery) {
    this.#query = query;
  }

  /** True while no child was added. */
  get isEmpty(): boolean {
    return this.#runs.length === 0;
  }

  add(name: string, node: TreeNode): void {
    if (this.#query.accepts?.(name, node) === false) return;
    if (this.#runs.length === 0 || this.#last.names.length === runLength) this.#beginRun();
    this.#last.names.push(name);
    this.#last.nodes.push(node);
  }

  /** Counts a name of the directory, added or not. @returns true at the end of a step. */
  isStep(): boolean {
    this.#looked += 1;
    return this.#looked % namesPerStep === 0;
  }

  *names(): Iterable<string> {
    for (const { names } of this.#runs) yield* names;
  }

  /** The children, in the query's order. Call it after the last `add`. */
  inOrder(): Iterator<Child, undefined> {
    if (this.#query.sorted !== true) return childrenIn(this.#runs);
    sort(this.#last);
    if (this.#runs.length < 2) return childrenIn(this.#runs);
    const lists = this.#runs.map((run) => childrenIn([run]));
    return merged(lists, byName);
  }

  #beginRun(): void {
    if (this.#query.sorted === true) sort(this.#last);
    this.#last = { names: [], nodes: [] };
    this.#runs.push(this.#last);
  }
}

function* childrenIn(runs: readonly Run[]): Generator<Child, undefined> {
  for (const { names, nodes } of runs) {
    for (let at = 0; at < names.length; at++) {
      const name = names[at];
      const node = nodes[at];
      if (name !== undefined && node !== undefined) yield [name, node];
    }
  }
}

function sort(run: Run): void {
  const children = [...childrenIn([run])].sort(byName);
  for (const [at, [name, node]] of children.entries()) {
    run.names[at] = name;
    run.nodes[at] = node;
  }
}

function byName([a]: Child, [b]: Child): number {
  return compareBytes(a, b);
}

/** The next item of a list, and an iterator over the items after it. */
interface ListHead<Item> {
  readonly item: Item;
  readonly rest: Iterator<Item>;
}

/**
 * Yields all items of sorted lists in order, one item at a time, so that a caller can sort many items in steps.
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
