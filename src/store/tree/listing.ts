/**
 * The nodes that an answer lists at and below a path: one level or all levels, without hidden names, and sorted on
 * request. A listing works in steps, because there may be a million names. Each node appears in the state that it had
 * at the listing's beginning.
 */

import { childPath, isHiddenName, type NodeRecord, type StorePath } from "../core/node.ts";
import type { Child, ChildQuery } from "./children.ts";
import { isDue, shownOf, type TreeNode } from "./tree-node.ts";
import type { FrozenWalk } from "./tree-walk.ts";

export interface ListOptions {
  /** If true, the content of directories below is listed, too. */
  readonly recursive?: boolean;
  /** If true, nodes are sorted by the bytes of their paths. Otherwise the order is arbitrary. */
  readonly sorted?: boolean;
}

export interface ListQuery extends ListOptions {
  /** The time by the clock of this run. The listing omits nodes that are due by then. */
  readonly nowMs: number;
}

/**
 * `leaf`: a file, or a directory for which no child is listed. `open`: a directory with at least one listed child. Its
 * children follow, and then its `close`.
 */
export interface ListingStep {
  readonly kind: "leaf" | "open" | "close";
  readonly node: NodeRecord;
}

interface ListingOptions {
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

  /** Only `Tree.list` calls this. */
  constructor(options: ListingOptions) {
    const { sorted = false, nowMs } = options.query;
    this.#options = options;
    this.#childQuery = { sorted, accepts: (name, node) => !isHiddenName(name) && !isDue(node, nowMs) };
  }

  /** True after the listing was too slow and its kept nodes were dropped. Then make no more steps. */
  get isOvertaken(): boolean {
    return this.#options.walk.isOvertaken;
  }

  /**
   * Yields the node at the path and the nodes below it, one in each step; undefined for a step without a node. Any time
   * may pass between two steps. Call it once.
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

  /** Releases the kept nodes. Call it after the last step, or instead of further steps. Idempotent. */
  end(): void {
    this.#options.walk.end();
  }

  /** Yields a node. If the query lists children of it, the node is also added to `open`. */
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
