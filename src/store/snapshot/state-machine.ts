/** The state that the records of a log build: the tree, its history, its lineage, and the times of its runs. */

import { nextTurn } from "../../lib/slices.ts";
import { apply, type CommandRecord } from "../command/command.ts";
import { isMark, RunClock } from "../command/run-clock.ts";
import type { Snapshot } from "../core/log-port.ts";
import { StoreError } from "../core/refusal.ts";
import type { Change } from "../tree/change.ts";
import { Tree } from "../tree/tree.ts";
import { EventRing } from "../watch/event-ring.ts";
import { type Origin, StateReader, type StoreState } from "./snapshot.ts";

/**
 * Its lineage says which start made the store's last change. The index and the term of the change are not enough: a
 * volume that is reset to an older copy reaches the same index and term again, with other changes. So each start has a
 * random id, its run. If two stores have the same run and index, their histories are equal up to that index.
 *
 * The first records of a start carry its run. As soon as one of them is in the log, later records do not carry it:
 * records of the same term belong to the same run. In a log with several members, the record that begins a leader's
 * term carries the run of that leader. If no record of a term carries a run, an older davit wrote them.
 */
export class StateMachine {
  readonly tree = new Tree();
  readonly history = new EventRing();
  #origin: Origin = { run: undefined, term: 0 };
  readonly #runClock: RunClock;

  /** @param agelessRoot see `RunClock`. */
  constructor(agelessRoot: string | undefined) {
    this.#runClock = new RunClock(this.tree.timers, agelessRoot);
  }

  /** The origin of the last change. */
  get origin(): Origin {
    return this.#origin;
  }

  /** Time of the last record by the clock of its run; undefined before the first. */
  get lastAtMs(): number | undefined {
    return this.#runClock.lastAtMs;
  }

  /** See `RunClock.begin`. */
  beginRun(term: number, beganAtMs: number): void {
    this.#runClock.begin(term, beganAtMs);
  }

  /**
   * Applies a record. Its caller adds the events to the history.
   * @returns its changes, or why it was refused.
   */
  apply(record: CommandRecord, term: number): readonly Change[] | StoreError {
    const { command, run } = record;
    const isKnown = run === undefined && (isMark(command) || term === this.#origin.term);
    if (!isKnown) this.#origin = { run, term };
    const atMs = this.#runClock.record(term, record);
    try {
      return apply(this.tree, atMs === record.atMs ? record : { ...record, atMs });
    } catch (error) {
      if (error instanceof StoreError) return error;
      throw error;
    }
  }

  /** Applies a record that needs no answer, and adds its events to the history. */
  replay(record: CommandRecord, term: number): void {
    const result = this.apply(record, term);
    // A refused command was refused when it was proposed, too.
    if (result instanceof StoreError) return;
    for (const { event } of result) this.history.add(event);
  }

  /** Replaces the state. Readers see the former one until the new one is whole. @throws {WalError} */
  async restore(snapshot: Snapshot): Promise<void> {
    const tree = new Tree();
    const history = new EventRing();
    const reader = new StateReader(tree, history);
    for await (const piece of snapshot.pieces) {
      reader.push(piece);
      await nextTurn();
    }
    reader.end();
    this.tree.adopt(tree);
    this.history.adopt(history);
    if (reader.origin !== undefined) this.#origin = reader.origin;
    this.#runClock.restore(this.#origin.term, reader.atMs);
  }

  /**
   * The present state, for a snapshot. Later changes do not change it. Call `end` when it was encoded.
   * @param historyBytes the most bytes of history in it.
   */
  freeze(historyBytes = Number.POSITIVE_INFINITY): { readonly state: StoreState; readonly end: () => void } {
    const walk = this.tree.walkFrozen();
    const { oldestIndex, events } = this.history.newest(historyBytes);
    const { tree, origin, lastAtMs: atMs } = this;
    const state = { index: tree.index, oldestIndex, origin, atMs, events, nodes: walk.steps() };
    return { state, end: () => walk.end() };
  }
}
