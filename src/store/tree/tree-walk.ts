/**
 * Walks over the tree as it was at one index. The walk takes steps, and the tree may change between them. Snapshots,
 * backups and listings use it.
 *
 * A walk reads the maps of the live tree and skips nodes that changed after its index. Before the tree replaces or
 * removes a node, it calls `keep`, and the walk visits the kept node instead. So a walk costs nothing at its start. It
 * keeps an old node only if the node changes before the walk leaves the node's directory.
 *
 * A directory comes before its children. The walk visits each node once, even if a batch that removed it is undone.
 */

import { childPath, isBelow, type StorePath } from "../core/node.ts";
import { type Child, type ChildQuery, CollectedChildren } from "./children.ts";
import type { Timer } from "./expiring-set.ts";
import type { DirectoryNode, TreeNode } from "./tree-node.ts";

/** A node in the form that a snapshot stores. The `value` of a directory is empty. */
export interface StoredNode {
  readonly path: StorePath;
  readonly kind: TreeNode["kind"];
  readonly value: string;
  readonly createdIndex: number;
  readonly modifiedIndex: number;
  readonly timer: Timer | undefined;
}

/**
 * A node's place in its directory. `path` is the path of the change. It may lead below this node, because a change also
 * makes the missing directories on its path.
 */
export interface NodePlace {
  readonly directory: DirectoryNode;
  readonly name: string;
  readonly path: StorePath;
}

interface FrozenWalkOptions {
  /** The path of `top`, where the walk begins. */
  readonly path: StorePath;
  readonly top: TreeNode;
  /** The tree's index when the walk begins. */
  readonly index: number;
  /** If true, `FrozenWalks` may end this walk early, to free the nodes that it keeps. */
  readonly mayBeOvertaken: boolean;
  readonly onEnd: () => void;
}

/** A directory whose children the walk is visiting. */
interface OpenDirectory {
  readonly path: StorePath;
  readonly children: Iterator<Child, undefined>;
}

// The memory of a kept node besides its value.
const keptOverheadBytes = 200;

export class FrozenWalk {
  readonly #options: FrozenWalkOptions;
  /**
   * The former nodes of changed names, by the `children` of their directory. The map identifies the directory, because
   * the directory's record may be replaced.
   */
  readonly #kept = new Map<DirectoryNode["children"], Map<string, TreeNode>>();
  /** The `children` of directories whose names were collected. The walk no longer needs the former nodes of these. */
  readonly #passed = new Set<DirectoryNode["children"]>();
  #keptBytes = 0;
  #isOvertaken = false;

  constructor(options: FrozenWalkOptions) {
    this.#options = options;
  }

  /** The memory of the kept nodes, in bytes. */
  get keptBytes(): number {
    return this.#keptBytes;
  }

  get mayBeOvertaken(): boolean {
    return this.#options.mayBeOvertaken;
  }

  /** True after the kept nodes were dropped. Then make no more steps. */
  get isOvertaken(): boolean {
    return this.#isOvertaken;
  }

  /** Keeps a node that is about to leave its place, if the walk needs it. @returns the bytes that it takes. */
  keep({ directory: { children }, name, path }: NodePlace, before: TreeNode): number {
    const { index, path: top } = this.#options;
    if (before.modifiedIndex > index || this.#passed.has(children) || !isBelow(path, top)) return 0;
    const kept = this.#kept.get(children) ?? new Map<string, TreeNode>();
    // The node is kept already: an undone batch had put it back into its place.
    if (kept.has(name)) return 0;
    this.#kept.set(children, kept.set(name, before));
    const bytes = keptOverheadBytes + (before.kind === "file" ? 2 * before.value.length : 0);
    this.#keptBytes += bytes;
    return bytes;
  }

  /** Yields every node below `top`, one in each step; undefined for a step without a node. */
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
   * result takes a few bytes of memory for each name. Call it once for each directory.
   */
  *collect({ children }: DirectoryNode, query: ChildQuery = {}): Generator<undefined, CollectedChildren> {
    const { index } = this.#options;
    const collected = new CollectedChildren(query);
    let kept = this.#kept.get(children);
    for (const [name, node] of children) {
      // An undone batch may have moved a kept node to the end of the map, where the loop meets it again.
      if (node.modifiedIndex <= index && kept?.has(name) !== true) collected.add(name, node);
      if (!collected.isStep()) continue;
      yield undefined;
      kept = this.#kept.get(children);
    }
    // The nodes that left their places before the end of the collection. Later changes no longer matter.
    const missed = this.#pass(children);
    if (missed.size > 0) yield* addMissed(collected, missed);
    return collected;
  }

  /** Releases the kept nodes. Call it after the last step, or instead of further steps. */
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

  /** Stops keeping former nodes of this directory. @returns the nodes kept so far. */
  #pass(children: DirectoryNode["children"]): Map<string, TreeNode> {
    const kept = this.#kept.get(children) ?? new Map<string, TreeNode>();
    this.#kept.delete(children);
    this.#passed.add(children);
    return kept;
  }
}

/** Adds the missed nodes whose names are not collected yet, in steps. */
function* addMissed(collected: CollectedChildren, missed: Map<string, TreeNode>): Generator<undefined, void> {
  for (const name of collected.names()) {
    missed.delete(name);
    if (collected.isStep()) yield undefined;
  }
  for (const [name, node] of missed) {
    collected.add(name, node);
    if (collected.isStep()) yield undefined;
  }
}

function storedNode(path: StorePath, node: TreeNode): StoredNode {
  const { kind, createdIndex, modifiedIndex, timer } = node;
  return { path, kind, value: node.kind === "file" ? node.value : "", createdIndex, modifiedIndex, timer };
}

// The same limit as for the history (`EventRing`).
const presetMaxKeptBytes = 64 * 1024 * 1024;

interface WalkStart {
  readonly path: StorePath;
  readonly top: TreeNode;
  readonly index: number;
  readonly mayBeOvertaken?: boolean;
}

/**
 * The active walks over the tree. A walk keeps nodes that change before it has visited them.
 *
 * The walks with `mayBeOvertaken`, which are the listings, share one limit for the memory of kept nodes. Beyond this
 * limit, the oldest of these walks ends early, so that slow readers cannot fill the memory. Other walks have no
 * limit.
 */
export class FrozenWalks {
  readonly #maxKeptBytes: number;
  readonly #walks = new Set<FrozenWalk>();
  /** The bytes that all walks with `mayBeOvertaken` keep. */
  #keptBytes = 0;

  constructor(maxKeptBytes = presetMaxKeptBytes) {
    this.#maxKeptBytes = maxKeptBytes;
  }

  get count(): number {
    return this.#walks.size;
  }

  begin({ mayBeOvertaken = false, ...start }: WalkStart): FrozenWalk {
    const onEnd = () => {
      if (this.#walks.delete(walk) && mayBeOvertaken) this.#keptBytes -= walk.keptBytes;
    };
    const walk = new FrozenWalk({ ...start, mayBeOvertaken, onEnd });
    this.#walks.add(walk);
    return walk;
  }

  /** Call it before a node leaves its place: each walk that still needs the node keeps it. */
  keep(place: NodePlace, before: TreeNode): void {
    for (const walk of this.#walks) {
      const bytes = walk.keep(place, before);
      if (walk.mayBeOvertaken) this.#keptBytes += bytes;
    }
    while (this.#keptBytes > this.#maxKeptBytes) this.#oldest()?.overtake();
  }

  #oldest(): FrozenWalk | undefined {
    // A set iterates in the order of additions.
    for (const walk of this.#walks) if (walk.mayBeOvertaken) return walk;
    return undefined;
  }
}
