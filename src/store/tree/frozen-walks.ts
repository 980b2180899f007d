/**
 * The active walks. One bound limits the memory of all walks that may be overtaken together. Beyond the bound the
 * oldest of them is overtaken, so that slow readers cannot fill the memory. Snapshots are never overtaken.
 */

import type { StorePath } from "../core/node.ts";
import type { TreeNode } from "./tree-node.ts";
import { FrozenWalk, type NodePlace } from "./tree-walk.ts";

// As much as the history may take.
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
  /** For the walks that may be overtaken. */
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

  /** Notifies all walks before a node leaves its place. */
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
