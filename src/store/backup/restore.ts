/**
 * Begins a store from a backup in an empty place: a new cluster, whose history begins there.
 *
 * Its indexes begin far beyond those of the backup, and beyond any that clients saw after the backup was taken. A
 * client of the lost store may still wait for that store's next event. The new store answers immediately that the
 * history is gone. With smaller indexes, the client would wait until the new store reached that event's index.
 * Followers recognise another store by its cluster id.
 */

import type { NewPlace } from "../core/log-port.ts";
import { encodeInTurns } from "../snapshot/snapshot.ts";
import type { Tree } from "../tree/tree.ts";
import type { StoredNode } from "../tree/tree-walk.ts";
import { randomId } from "../wal/begin-log.ts";
import type { ReadBackup } from "./backup.ts";

export interface RestoreOptions {
  readonly backup: ReadBackup;
  readonly place: NewPlace;
  /** Returns a node as the new store has it; undefined for a node that it does not have. */
  readonly keep: (node: StoredNode) => StoredNode | undefined;
  /** Random bytes from a source that does not repeat. */
  readonly random: (bytes: number) => Uint8Array;
  /** The wall clock, Unix milliseconds. */
  readonly nowMs: number;
}

export interface Restored {
  readonly clusterId: string;
  /** The index of the last change; the store continues from it. */
  readonly index: number;
}

/**
 * How far the store index and the sequence leap. davit assumes that a store makes fewer changes than this between its
 * last backup and its loss.
 */
export const restoreLeap = 1_000_000;

/** Writes the store, and resolves when everything is durable. @throws {WalError} see `NewPlace.begin`. */
export async function restore({ backup, place, keep, random, nowMs }: RestoreOptions): Promise<Restored> {
  const { head, tree } = backup;
  const sequence = head.raftIndex + restoreLeap;
  const index = head.index + restoreLeap;
  const clusterId = randomId(random).toString(16);
  const state = { index, oldestIndex: index + 1, events: [], nodes: nodesOf(tree, keep) };
  await place.begin({ clusterId, sequence, term: head.raftTerm, atMs: nowMs, pieces: encodeInTurns(state) });
  return { clusterId, index };
}

function* nodesOf(tree: Tree, keep: RestoreOptions["keep"]): Iterable<StoredNode | undefined> {
  const walk = tree.walkFrozen();
  for (const node of walk.steps()) yield node && keep(node);
  walk.end();
}
