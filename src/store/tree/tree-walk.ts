/**
 * Walks over the tree as it was at one index, in steps, while the tree changes. Snapshots, backups and listings use it.
 *
 * A walk reads the maps of the live tree and skips newer nodes. The tree calls `keep` before it replaces or removes a
 * node, and the walk visits the kept node instead. So a walk begins at no cost, and memory holds two versions only of
 * nodes in directories that the walk has not reached. It visits each node once, a directory before its children.
 */

import { childPath, isBelow, type StorePath } from "../core/node.ts";
import { type Child, type ChildQuery, CollectedChildren } from "./children.ts";
import type { Timer } from "./expiring-set.ts";
import type { DirectoryNode, TreeNode } from "./tree-node.ts";

/** A node as a snapshot stores it. The `value` of a directory is empty. */
export interface StoredNode {
  readonly path: StorePath;
  readonly kind: TreeNode["kind"];
  readonly value: string;
  readonly createdIndex: number;
  readonly modifiedIndex: number;
  readonly timer: Timer | undefined;
}

/** Where a node is, or will be. `path` is the path of the change; the node may be a directory on the way to it. */
export interface NodePlace {
  readonly directory: DirectoryNode;
  readonly name: string;
  readonly path: StorePath;
}

export interface FrozenWalkOptions {
  /** Where it begins. */
  readonly path: StorePath;
  readonly top: TreeNode;
  /** The tree's present index. */
  readonly index: number;
  /** True lets `FrozenWalks` end this walk early, to free the nodes kept for it. */
  readonly mayBeOvertaken: boolean;
  readonly onEnd: () => void;
}

/** A walk's place in a directory. */
interface OpenDirectory {
  readonly path: StorePath;
  readonly children: Iterator<Child, undefined>;
}

// The cost of a kept node beside its value.
const keptOverheadBytes = 200;

export class FrozenWalk {
  readonly #options: FrozenWalkOptions;
  /** By the map of a directory: the former nodes of changed names. */
  readonly #kept = new Map<DirectoryNode["children"], Map<string, TreeNode>>();
  /** Directories whose names were collected: later changes in them do not matter. */
  readonly #passed = new Set<DirectoryNode["children"]>();
  #keptBytes = 0;
  #isOvertaken = false;

  constructor(options: FrozenWalkOptions) {
    this.#options = options;
  }

  /** The memory of the kept nodes. */
  get keptBytes(): number {
    return this.#keptBytes;
  }

  get mayBeOvertaken(): boolean {
    return this.#options.mayBeOvertaken;
  }

  /** True when the kept nodes were dropped: then make no more steps. */
  get isOvertaken(): boolean {
    return this.#isOvertaken;
  }

  /** Called before a node leaves its place. @returns the bytes that are kept for it. */
  keep({ directory: { children }, name, path }: NodePlace, before: TreeNode): number {
    const { index, path: top } = this.#options;
    if (before.modifiedIndex > index || this.#passed.has(children) || !isBelow(path, top)) return 0;
    const kept = this.#kept.get(children) ?? new Map<string, TreeNode>();
    // A batch that was undone restores what it removed.
    if (kept.has(name)) return 0;
    this.#kept.set(children, kept.set(name, before));
    const bytes = keptOverheadBytes + (before.kind === "file" ? 2 * before.value.length : 0);
    this.#keptBytes += bytes;
    return bytes;
  }

  /** Every node below the start, one for each step; undefined for a step without a result. */
  *steps(): Generator<StoredNode | undefined, undefined> {
    const { path, top } = this.#options;
    const open: OpenDirectory[] = [];
    if (top.kind === "directory") open.push({ path, children: (yield* this.collect(top)).inOrder() });
    for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
      const { done, value: child } = last.children.next();
      if (done === true) {
        open.pop();
        continue;
      }
      const [name, node] = child;
      const at = childPath(last.path, name);
      yield storedNode(at, node);
      if (node.kind === "directory") open.push({ path: at, children: (yield* this.collect(node)).inOrder() });
    }
  }

  /**
   * Collects the children of a directory that the walk has reached, in steps. Any time may pass between two steps. The
   * result holds some words of memory for each name. Call it once for a directory.
   */
  *collect({ children }: DirectoryNode, query: ChildQuery = {}): Generator<undefined, CollectedChildren> {
    const { index } = this.#options;
    const collected = new CollectedChildren(query);
    for (const [name, node] of children) {
      if (node.modifiedIndex <= index) collected.add(name, node);
      if (collected.isStep()) yield undefined;
    }
    // Nodes that were removed before or during the collection. Later removals no longer matter.
    const missed = this.#pass(children);
    if (missed.size === 0) return collected;
    for (const name of collected.names()) {
      missed.delete(name);
      if (collected.isStep()) yield undefined;
    }
    for (const [name, node] of missed) {
      collected.add(name, node);
      if (collected.isStep()) yield undefined;
    }
    return collected;
  }

  /** Call it when the walk has ended, or is abandoned. */
  end(): void {
    this.#options.onEnd();
    this.#kept.clear();
    this.#passed.clear();
    this.#keptBytes = 0;
  }

  /** Ends the walk early, to free the kept nodes. */
  overtake(): void {
    this.#isOvertaken = true;
    this.end();
  }

  /** Stops keeping former nodes of this directory. @returns those kept so far. */
  #pass(children: DirectoryNode["children"]): Map<string, TreeNode> {
    const kept = this.#kept.get(children) ?? new Map<string, TreeNode>();
    this.#kept.delete(children);
    this.#passed.add(children);
    return kept;
  }
}

function storedNode(path: StorePath, node: TreeNode): StoredNode {
  const { kind, createdIndex, modifiedIndex, timer } = node;
  return { path, kind, value: node.kind === "file" ? node.value : "", createdIndex, modifiedIndex, timer };
}
