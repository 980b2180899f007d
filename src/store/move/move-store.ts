/**
 * Moves a store to another place: with its keys, indexes, history, ends of keys, cluster id and lineage. For clients it
 * is the same store: their indexes stay valid, and their watches go on.
 *
 * The former place keeps its records, and gets a mark, so that no davit goes on from them by accident. The mark is made
 * when everything was read, before the new place has a store. So at any moment at most one of the two can be started.
 */

import { type NewPlace, WalError } from "../core/log-port.ts";
import { encodeInTurns } from "../snapshot/snapshot.ts";
import type { StateMachine } from "../snapshot/state-machine.ts";

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
   * @param agelessRoot see `RunClock`. @throws {WalError} locked, unusable, damaged, newerFormat.
   */
  read(agelessRoot: string): Promise<StoppedStore>;
  /** Marks the place, if nothing was written since `read`. @param to the new place, for people. @throws {WalError} */
  mark(to: string): Promise<void>;
  /** Removes the mark. @throws {WalError} */
  unmark(): Promise<void>;
  /** Unlocks the place; idempotent. */
  release(): Promise<void>;
}

export interface MoveOptions {
  readonly from: OldPlace;
  readonly to: NewPlace;
  /** The new place, for the mark. */
  readonly toName: string;
  readonly agelessRoot: string;
  /** The wall clock, Unix milliseconds. */
  readonly nowMs: number;
}

/** Moves a store, and resolves when its new place has everything. @throws {WalError} see `OldPlace` and `NewPlace`. */
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
