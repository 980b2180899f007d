/** The tree's changes, and their results. */

import type { StoreEvent, StorePath } from "../core/node.ts";
import type { DirectoryNode } from "./tree-node.ts";

/** What a command did. */
export interface Change {
  readonly event: StoreEvent;
  /** The removed directory, with everything in it: look at it now, and do not keep it. */
  readonly removed?: DirectoryNode;
}

/** The fields of every change that writes a node. */
export interface Writing {
  readonly path: StorePath;
  /** Time of the record, Unix milliseconds. */
  readonly atMs: number;
  /** How long the node lives from then on; undefined for ever. */
  readonly ttlSeconds?: number | undefined;
  /** Marks an event that no watcher gets. */
  readonly isRefresh?: boolean;
}

export interface Creation extends Writing {
  readonly value: string;
  readonly dir?: boolean;
  readonly action: "set" | "create";
  /** True replaces an existing file; false refuses. */
  readonly replaces: boolean;
}

export interface Overwriting extends Writing {
  /** Undefined keeps the present value. */
  readonly value: string | undefined;
  readonly action: "update" | "compareAndSwap";
}

export interface Removal {
  readonly path: StorePath;
  readonly atMs: number;
  readonly action: "delete" | "compareAndDelete";
  readonly dir?: boolean;
  readonly recursive?: boolean;
}
