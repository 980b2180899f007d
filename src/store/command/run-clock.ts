/**
 * Carries the remaining time of each timer from one run to the next. In a log with several members, each leader's term
 * counts as a run here. Each run has its own clock, which may be wrong, so davit never compares times of two runs. For
 * timers, no time passes between the last record of a run and the beginning of the next run.
 *
 * When a replay reaches the first record of a run, it adjusts the timers as that run did at its start.
 */

import type { StorePath } from "../core/node.ts";
import type { ExpiringSet } from "../tree/expiring-set.ts";
import type { Command, CommandRecord } from "./command.ts";

/** The fields that the first records of a run carry. */
export interface NewRun {
  readonly run: string;
  readonly beganAtMs: number;
}

/**
 * True for a mark: a command that changes no node. It records its time alone, or another end of a node. The lineage
 * ignores a mark without a `run`.
 */
export function isMark(command: Command): boolean {
  return command.kind === "extend" || (command.kind === "batch" && command.commands.length === 0);
}

/**
 * Returns the fields that the record of a command carries while its run is new. For a mark, `run` is left out: a mark
 * makes no change, so it must not change the lineage.
 */
export function newRunOf({ run, beganAtMs }: NewRun, command: Command): Partial<NewRun> {
  return isMark(command) ? { beganAtMs } : { run, beganAtMs };
}

export class RunClock {
  readonly #timers: ExpiringSet;
  readonly #isAgeless: (path: StorePath) => boolean;
  #term: number | undefined;
  #lastAtMs: number | undefined;

  /** @param agelessRoot the nodes below it get their whole ttl again at each start; undefined for no nodes. */
  constructor(timers: ExpiringSet, agelessRoot: string | undefined) {
    this.#timers = timers;
    this.#isAgeless = (path) => agelessRoot !== undefined && path.startsWith(`${agelessRoot}/`);
  }

  /** Time of the last record by the clock of its run; undefined if unknown. */
  get lastAtMs(): number | undefined {
    return this.#lastAtMs;
  }

  /** Continues from a snapshot. @param term of the snapshot's last record, 0 if unknown. */
  restore(term: number, atMs: number | undefined): void {
    this.#term = term;
    this.#lastAtMs = atMs;
  }

  /** Begins the run of a leader's term. @param nowMs when it begins, by the clock of that run. */
  begin(term: number, nowMs: number): void {
    this.#timers.beginRun(nowMs, this.#lastAtMs, this.#isAgeless);
    this.#term = term;
  }

  /**
   * Takes the times of the next record.
   * @returns the record's time by the clock of its run. A member may have stamped the record by the clock of an earlier
   * leader. Then the result is the time of the previous record, because the clocks of two leaders may differ by any
   * amount.
   */
  record(term: number, { atMs, beganAtMs = atMs, clockTerm }: Omit<CommandRecord, "command">): number {
    if (term !== this.#term) this.begin(term, beganAtMs);
    else if (clockTerm !== undefined && clockTerm !== term) return this.#lastAtMs ?? atMs;
    this.#lastAtMs = atMs;
    return atMs;
  }
}
