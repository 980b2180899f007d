/** The names of a directory, collected in steps and put in order: sorting a million of them takes a second. */

import { merged } from "../lib/merge.ts";
import { compareBytes } from "../lib/order.ts";
import type { TreeNode } from "./tree-node.ts";

export type Child = readonly [name: string, node: TreeNode];

export interface ChildQuery {
  /** Order by the bytes of the names; otherwise they come as they were collected. */
  readonly sorted?: boolean;
  /** What it refuses is left out. */
  readonly accepts?: (name: string, node: TreeNode) => boolean;
}

// Sorting so many names takes a millisecond or two.
const runLength = 2_048;
// Collecting so many takes a microsecond or two.
const namesPerStep = 32;

export class CollectedChildren {
  readonly #query: ChildQuery;
  /** Each in order by itself. */
  readonly #runs: Child[][] = [];
  /** The one that is not full. */
  #run: Child[] = [];
  #looked = 0;

  constructor(query: ChildQuery) {
    this.#query = query;
  }

  /** True when nothing was found. */
  get isEmpty(): boolean {
    return this.#runs.length === 0 && this.#run.length === 0;
  }

  add(child: Child): void {
    if (this.#query.accepts?.(...child) === false) return;
    this.#run.push(child);
    if (this.#run.length === runLength) this.#endRun();
  }

  /** Counts a name that was looked at. @returns true at the end of a step. */
  isStep(): boolean {
    this.#looked += 1;
    return this.#looked % namesPerStep === 0;
  }

  /** As they were collected. */
  *all(): Generator<Child, undefined> {
    for (const run of this.#runs) yield* run;
    yield* this.#run;
  }

  /** As the query asks. */
  inOrder(): Iterator<Child, undefined> {
    if (this.#runs.length > 0 && this.#query.sorted !== true) return this.all();
    this.#endRun();
    const [only = []] = this.#runs;
    return this.#runs.length > 1 ? merged(this.#runs, byName) : only.values();
  }

  #endRun(): void {
    if (this.#query.sorted === true) this.#run.sort(byName);
    this.#runs.push(this.#run);
    this.#run = [];
  }
}

function byName([a]: Child, [b]: Child): number {
  return compareBytes(a, b);
}
