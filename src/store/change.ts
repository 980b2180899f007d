/** Changes that the tree takes, and what each one did. */

import type { StoreEvent, StorePath } from "./node.ts";
import type { DirectoryNode } from "./tree-node.ts";

/** What a command did. */
export interface Change {
  readonly event: StoreEvent;
  /** The directory that went away, with all that was in it: to be looked at now, and not kept. */
  readonly removed?: DirectoryNode;
}

/** What every change that writes a node says. */
export interface Writing {
  readonly path: StorePath;
  /** Time of the record, Unix milliseconds. */
  readonly atMs: number;
  /** How long the node is to live from then on; undefined for ever. */
  readonly ttlSeconds?: number | undefined;
  /** Marks the event as one that no watcher gets. */
  readonly isRefresh?: boolean;
}

export interface Creation extends Writing {
  readonly value: string;
  readonly dir?: boolean;
  readonly action: "set" | "create";
  /** A file that is there is replaced; otherwise it is refused. */
  readonly replaces: boolean;
}

export interface Overwriting extends Writing {
  /** Undefined keeps the one that is there. */
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
