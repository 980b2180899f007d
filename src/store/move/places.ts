/** The places where a whole store can be, and the two ways to begin it in another one: a move, and a restore. */

import type { ReadBackup } from "../backup/backup.ts";
import { randomId, type Snapshot, WalError } from "../core/log-port.ts";
import { encodeInTurns } from "../snapshot/snapshot.ts";
import type { StateMachine } from "../snapshot/state-machine.ts";
import type { Tree } from "../tree/tree.ts";
import type { StoredNode } from "../tree/tree-walk.ts";

/** A whole store, from which a log goes on in a new place. */
export interface StoreImage extends Snapshot {
  /** See `LogIdentity`. */
  readonly clusterId: string;
  /** The term of the last record. The log goes on with a later one. */
  readonly term: number;
  /** Unix milliseconds at the last record, by the clock that its `ttl`s are counted by. */
  readonly atMs: number;
}

/** A place where a store may begin: a directory, or a prefix in etcd. */
export interface NewPlace {
  /**
   * Refuses a place that has anything in it, except what an interrupted `begin` left.
   * @throws {WalError} unusable, with what to do.
   */
  refuseUnlessEmpty(): Promise<void>;
  /**
   * Writes a store. If it is interrupted, the place has no store, and another `begin` may use it. The last piece of the
   * image is taken before the place has a store.
   * @throws {WalError} locked, unusable. After an error, `refuseUnlessEmpty` knows whether the place has the store.
   */
  begin(image: StoreImage): Promise<void>;
}

/** A whole store, read from its place. */
export interface StoppedStore {
  readonly machine: StateMachine;
  /** See `LogIdentity`. */
  readonly clusterId: string;
  /** Of the last record, and its term. */
  readonly sequence: number;
  readonly term: number;
}

/** The place of a store that no davit uses. */
export interface OldPlace {
  /**
   * Locks the place, and reads its store.
   * @param agelessRoot see `StateMachine`. @throws {WalError} locked, unusable, damaged, newerFormat.
   */
  read(agelessRoot: string): Promise<StoppedStore>;
  /** Marks the place, if nothing was written since `read`. @param to the new place, for people. @throws {WalError} */
  mark(to: string): Promise<void>;
  /** Removes the mark. @throws {WalError} */
  unmark(): Promise<void>;
  /** Unlocks the place; idempotent. */
  release(): Promise<void>;
}

interface MoveOptions {
  readonly from: OldPlace;
  readonly to: NewPlace;
  /** The new place, for the mark. */
  readonly toName: string;
  readonly agelessRoot: string;
  /** The wall clock, Unix milliseconds. */
  readonly nowMs: number;
}

/**
 * Moves a store: with its keys, indexes, history, ends of keys, cluster id and lineage. For clients it is the same
 * store: their indexes stay valid, and their watches go on. Resolves when the new place has everything.
 *
 * The former place keeps its records, and gets a mark, so that no davit goes on from them by accident. The mark is made
 * when everything was read, before the new place has a store. So at any moment at most one of the two can be started.
 * @throws {WalError} see `OldPlace` and `NewPlace`.
 */
export async function moveStore({ from, to, toName, agelessRoot, nowMs }: MoveOptions): Promise<StoppedStore> {
  await to.refuseUnlessEmpty();
  let isMarked = false;
  try {
    const store = await from.read(agelessRoot);
    const { machine, clusterId, sequence, term } = store;
    const { state, end } = machine.freeze();
    const pieces = async function* () {
      yield* encodeInTurns(state);
      isMarked = true;
      await from.mark(toName);
    };
    try {
      await to.begin({ clusterId, sequence, term, atMs: machine.lastAtMs ?? nowMs, pieces: pieces() });
    } finally {
      end();
    }
    return store;
  } catch (error) {
    if (!isMarked) throw error;
    // After a failure without an answer, the new place may have the store: two stores must not go on from one.
    if (!(await isEmpty(to))) throw mayBeThere(error);
    await from.unmark();
    throw error;
  } finally {
    await from.release();
  }
}

/** True if a place has no store, and will get none by a write that is still on its way. */
async function isEmpty(place: NewPlace): Promise<boolean> {
  try {
    await place.refuseUnlessEmpty();
    return true;
  } catch {
    return false;
  }
}

function mayBeThere(error: unknown): unknown {
  if (!(error instanceof WalError)) return error;
  const text = `${error.message}; the new place may have the store, so the old one keeps its mark`;
  return new WalError(error.reason, text, { cause: error });
}

interface RestoreOptions {
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

/**
 * Begins a store from a backup in an empty place: a new cluster, whose history begins there. Resolves when everything
 * is durable.
 *
 * Its indexes begin far beyond those of the backup, and beyond any that clients saw after the backup was taken. A
 * client of the lost store may still wait for that store's next event. The new store answers immediately that the
 * history is gone. With smaller indexes, the client would wait until the new store reached that event's index.
 * Followers recognise another store by its cluster id.
 * @throws {WalError} see `NewPlace.begin`.
 */
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
