/**
 * What an answer lists at and below a path: visible names, one level or all, unordered or in the order of their bytes.
 * It takes steps, since there may be a million names. It shows every node in its state at the index and time when the
 * listing began.
 */

import { childPath, isHiddenName, type NodeRecord, type StorePath } from "../core/node.ts";
import type { Child, ChildQuery } from "./children.ts";
import { isDue, shownOf, type TreeNode, versionOf } from "./tree-node.ts";
import type { FrozenWalk } from "./tree-walk.ts";

export interface ListOptions {
  /** List directories below, too. */
  readonly recursive?: boolean;
  /** Order by the bytes of the path; otherwise the order is arbitrary. */
  readonly sorted?: boolean;
}

export interface ListQuery extends ListOptions {
  /** By the clock of this run: nodes that are due by then are left out. */
  readonly nowMs: number;
}

/**
 * `leaf`: a file, or a directory without listed children. `open`: a directory; at least one of its nodes comes before
 * its `close`.
 */
export interface ListingStep {
  readonly kind: "leaf" | "open" | "close";
  readonly node: NodeRecord;
}

export interface ListingOptions {
  readonly path: StorePath;
  readonly top: TreeNode;
  readonly query: ListQuery;
  readonly walk: FrozenWalk;
}

interface ListedDirectory {
  readonly node: NodeRecord;
  readonly children: Iterator<Child, undefined>;
}

export class Listing {
  readonly #options: ListingOptions;
  readonly #childQuery: ChildQuery;

  /** Only the tree calls this. */
  constructor(options: ListingOptions) {
    const { sorted = false, nowMs } = options.query;
    this.#options = options;
    this.#childQuery = { sorted, accepts: (name, node) => !isHiddenName(name) && !isDue(node, nowMs) };
  }

  /**
   * While the version stays the same, equal queries for the path have equal answers. Undefined for a file, and if time
   * alone can change the answer.
   */
  get version(): symbol | undefined {
    return versionOf(this.#options.top);
  }

  /** True when it was so slow that its kept nodes were dropped: make no more steps then. */
  get isOvertaken(): boolean {
    return this.#options.walk.isOvertaken;
  }

  /**
   * The node and its content, one node for each step; undefined for a step without a result. Any time may pass between
   * two steps. Iterate once.
   */
  *steps(): Generator<ListingStep | undefined, undefined> {
    const { path, top, query } = this.#options;
    // Open directories are in a list instead of on the call stack: a path may be thousands of names deep.
    const open: ListedDirectory[] = [];
    yield* this.#enter(path, top, open);
    for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
      const { done, value: child } = last.children.next();
      if (done === true) {
        open.pop();
        yield { kind: "close", node: last.node };
        continue;
      }
      const [name, node] = child;
      const at = childPath(last.node.path, name);
      if (node.kind === "directory" && query.recursive === true) yield* this.#enter(at, node, open);
      else yield { kind: "leaf", node: shownOf(at, node, query.nowMs) };
    }
  }

  /** Call it when the listing has ended, or is abandoned. Idempotent. */
  end(): void {
    this.#options.walk.end();
  }

  /** Yields a node and the children that the query lists. */
  *#enter(path: StorePath, node: TreeNode, open: ListedDirectory[]): Generator<ListingStep | undefined, undefined> {
    const { query, walk } = this.#options;
    const shown = shownOf(path, node, query.nowMs);
    const children = node.kind === "directory" ? yield* walk.collect(node, this.#childQuery) : undefined;
    if (children === undefined || children.isEmpty) {
      yield { kind: "leaf", node: shown };
      return;
    }
    yield { kind: "open", node: shown };
    open.push({ node: shown, children: children.inOrder() });
  }
}
