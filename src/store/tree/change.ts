/** The requests to change the tree, and their result. */

import type { StoreEvent, StorePath } from "../core/node.ts";
import type { DirectoryNode } from "./tree-node.ts";

/** The result of one change. */
export interface Change {
  readonly event: StoreEvent;
  /** The removed directory with its content. Do not keep it after the notification, because it can be large. */
  readonly removed?: DirectoryNode;
}

/** The fields of every change that writes a node. */
export interface Writing {
  readonly path: StorePath;
  /** Time of the record, Unix milliseconds. */
  readonly atMs: number;
  /** How long the node lives after `atMs`; undefined for a permanent node. */
  readonly ttlSeconds?: number | undefined;
  /** True for an event that no watcher gets. */
  readonly isRefresh?: boolean;
}

export interface Creation extends Writing {
  readonly value: string;
  readonly dir?: boolean;
  readonly action: "set" | "create";
  /** If true, the creation replaces an existing file. If false, it is refused if a node is there. */
  readonly replaces: boolean;
}

export interface Overwriting extends Writing {
  /** Undefined keeps the present value. */
  readonly value: string | undefined;
  readonly action: "update" | "compareAndSwap";
}

export interface Extension {
  readonly path: StorePath;
  /** The index of the node's last change. */
  readonly modifiedIndex: number;
  /** How long the node lives after the record's time. */
  readonly leftMs: number;
}

export interface Removal {
  readonly path: StorePath;
  readonly atMs: number;
  readonly action: "delete" | "compareAndDelete";
  readonly dir?: boolean;
  readonly recursive?: boolean;
}
