/**
 * The active walks over the tree. A walk keeps nodes that change before it has visited them.
 *
 * The walks with `mayBeOvertaken`, which are the listings, share one limit for the memory of kept nodes. Beyond this
 * limit, the oldest of these walks ends early, so that slow readers cannot fill the memory. Other walks have no
 * limit.
 */

import type { StorePath } from "../core/node.ts";
import type { TreeNode } from "./tree-node.ts";
import { FrozenWalk, type NodePlace } from "./tree-walk.ts";

// The same limit as for the history (`EventRing`).
const presetMaxKeptBytes = 64 * 1024 * 1024;

export interface WalkStart {
  readonly path: StorePath;
  readonly top: TreeNode;
  readonly index: number;
  readonly mayBeOvertaken?: boolean;
}

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
