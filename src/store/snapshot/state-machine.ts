/** The state that the records of a log build: the tree, its history, its lineage, and the times of its runs. */

import { nextTurn } from "../../lib/slices.ts";
import { apply, type CommandRecord, isMark } from "../command/command.ts";
import type { Snapshot } from "../core/log-port.ts";
import type { StorePath } from "../core/node.ts";
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
 *
 * It carries the remaining time of each timer from one run to the next. In a log with several members, each leader's
 * term counts as a run here. Each run has its own clock, which may be wrong, so davit never compares times of two runs.
 * For timers, no time passes between the last record of a run and the beginning of the next run. When a replay reaches
 * the first record of a run, it adjusts the timers as that run did at its start.
 */
export class StateMachine {
  readonly tree = new Tree();
  readonly history = new EventRing();
  #origin: Origin = { run: undefined, term: 0 };
  readonly #isAgeless: (path: StorePath) => boolean;
  /** The term of the present run; undefined before the first. */
  #term: number | undefined;
  #lastAtMs: number | undefined;

  /** @param agelessRoot the nodes below it get their whole ttl again at each start; undefined for no nodes. */
  constructor(agelessRoot: string | undefined) {
    this.#isAgeless = (path) => agelessRoot !== undefined && path.startsWith(`${agelessRoot}/`);
  }

  /** The origin of the last change. */
  get origin(): Origin {
    return this.#origin;
  }

  /** Time of the last record by the clock of its run; undefined before the first. */
  get lastAtMs(): number | undefined {
    return this.#lastAtMs;
  }

  /** Begins the run of a leader's term. @param beganAtMs when, by the clock of that run. */
  beginRun(term: number, beganAtMs: number): void {
    this.tree.timers.beginRun(beganAtMs, this.#lastAtMs, this.#isAgeless);
    this.#term = term;
  }

  /**
   * Applies a record. Its caller adds the events to the history.
   * @returns its changes, or why it was refused.
   */
  apply(record: CommandRecord, term: number): readonly Change[] | StoreError {
    const { command, run } = record;
    const isKnown = run === undefined && (isMark(command) || term === this.#origin.term);
    if (!isKnown) this.#origin = { run, term };
    const atMs = this.#timeOf(record, term);
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
    this.#term = this.#origin.term;
    this.#lastAtMs = reader.atMs;
  }

  /**
   * Takes the times of the next record.
   * @returns the record's time by the clock of its run. A member may have stamped the record by the clock of an earlier
   * leader. Then the result is the time of the previous record, because the clocks of two leaders may differ by any
   * amount. So it is for a record that lay in etcd for seconds: a client that gave this write up, and has the answer
   * to the same write at another member, must not lose its key early.
   */
  #timeOf({ atMs, beganAtMs = atMs, clockTerm, mayGoBack = false }: CommandRecord, term: number): number {
    const lastAtMs = this.#lastAtMs ?? atMs;
    if (term !== this.#term) this.beginRun(term, beganAtMs);
    else if (clockTerm !== undefined && (clockTerm !== term || (!mayGoBack && atMs < lastAtMs))) return lastAtMs;
    this.#lastAtMs = atMs;
    return atMs;
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
