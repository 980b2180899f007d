/**
 * A walk over the whole tree as it was at one index, in steps, while the tree goes on changing.
 *
 * It goes through the maps of the live tree and leaves out what was made since. The tree tells it of every node that is
 * about to be replaced or removed (`keep`), and what was there before is walked all the same. So beginning costs
 * nothing, and only what changes meanwhile is kept twice. A node may come more than once, always in the same state, and
 * in any order.
 */

import type { Timer } from "./expiring-set.ts";
import { childPath, rootPath, type StorePath } from "./node.ts";
import type { DirectoryNode, TreeNode } from "./tree-node.ts";

/** A node as a snapshot keeps it. The `value` of a directory is empty. */
export interface StoredNode {
  readonly path: StorePath;
  readonly kind: TreeNode["kind"];
  readonly value: string;
  readonly createdIndex: number;
  readonly modifiedIndex: number;
  readonly timer: Timer | undefined;
}

interface Open {
  readonly path: StorePath;
  readonly children: Iterator<readonly [name: string, node: TreeNode]>;
}

interface Kept {
  readonly path: StorePath;
  readonly node: TreeNode;
  /** What is in it is walked, too. */
  readonly isWhole: boolean;
}

export class FrozenWalk {
  readonly #index: number;
  readonly #onEnd: () => void;
  readonly #open: Open[];
  readonly #kept: Kept[] = [];

  /** For the tree alone, which has to tell it of changes until `onEnd`. */
  constructor(root: DirectoryNode, index: number, onEnd: () => void) {
    this.#index = index;
    this.#onEnd = onEnd;
    this.#open = [{ path: rootPath, children: root.children.entries() }];
  }

  /** Is told what is about to go from a path, and what comes instead. */
  keep(path: StorePath, before: TreeNode, after: TreeNode | undefined): void {
    if (before.createdIndex > this.#index) return;
    // A directory that only gets another record goes on holding what it holds.
    const isSame = before.kind === "directory" && after?.kind === "directory" && before.sums === after.sums;
    // What was changed since was kept then; only a directory may still hold something that was not.
    if ((isSame || before.kind === "file") && before.modifiedIndex > this.#index) return;
    this.#kept.push({ path, node: before, isWhole: !isSame });
  }

  /**
   * Every node but the root, each time one step on; undefined for a step that found none. What is kept is taken from
   * the live tree at the moment of the step, so there may be any time between two.
   */
  *steps(): Iterable<StoredNode | undefined> {
    for (;;) {
      const kept = this.#kept.pop();
      const directory = this.#open.at(-1);
      if (kept !== undefined) {
        yield this.#visit(kept);
      } else if (directory !== undefined) {
        const { done, value: entry } = directory.children.next();
        if (done === true) this.#open.pop();
        else yield this.#visit({ path: childPath(directory.path, entry[0]), node: entry[1], isWhole: true });
      } else {
        return;
      }
    }
  }

  /** To be called when the walk is over, or given up. */
  end(): void {
    this.#onEnd();
  }

  #visit({ path, node, isWhole }: Kept): StoredNode | undefined {
    if (node.createdIndex > this.#index) return undefined;
    if (isWhole && node.kind === "directory") this.#open.push({ path, children: node.children.entries() });
    if (node.modifiedIndex > this.#index) return undefined;
    const { kind, createdIndex, modifiedIndex, timer } = node;
    return { path, kind, value: node.kind === "file" ? node.value : "", createdIndex, modifiedIndex, timer };
  }
}
