/**
 * Carries the remaining time of each timer from one run to the next. Each run has its own clock, which may be wrong, so
 * times of two runs are never compared. For timers, no time passes between the last record of a run and the beginning
 * of the next.
 *
 * At the first record of a run, a replay does what the run itself did at its start.
 */

import type { StorePath } from "../core/node.ts";
import type { ExpiringSet } from "../tree/expiring-set.ts";
import type { Command, CommandRecord } from "./command.ts";

/** What the first records of a run carry. */
export interface NewRun {
  readonly run: string;
  readonly beganAtMs: number;
}

/** True for a command that only records a time: it changes nothing, so it does not count as a change of its start. */
export function isMark(command: Command): boolean {
  return command.kind === "batch" && command.commands.length === 0;
}

/** The run's fields for a command, while the run is new. */
export function newRunOf({ run, beganAtMs }: NewRun, command: Command): Partial<NewRun> {
  return isMark(command) ? { beganAtMs } : { run, beganAtMs };
}

export class RunClock {
  readonly #timers: ExpiringSet;
  readonly #isAgeless: (path: StorePath) => boolean;
  #term: number | undefined;
  #lastAtMs: number | undefined;

  /** @param agelessRoot nodes below it get their whole ttl anew with each run; undefined for none. */
  constructor(timers: ExpiringSet, agelessRoot: string | undefined) {
    this.#timers = timers;
    this.#isAgeless = (path) => agelessRoot !== undefined && path.startsWith(`${agelessRoot}/`);
  }

  /** Time of the last record by the clock of its run; undefined if unknown. */
  get lastAtMs(): number | undefined {
    return this.#lastAtMs;
  }

  /** Continues from a snapshot. @param term of its last record, 0 if unknown. */
  restore(term: number, atMs: number | undefined): void {
    this.#term = term;
    this.#lastAtMs = atMs;
  }

  /** Begins a run, named by its term, at a time of its clock. */
  begin(term: number, nowMs: number): void {
    this.#timers.beginRun(nowMs, this.#lastAtMs, this.#isAgeless);
    this.#term = term;
  }

  /** Takes the times of the next record. */
  record(term: number, { atMs, beganAtMs = atMs }: Pick<CommandRecord, "atMs" | "beganAtMs">): void {
    if (term !== this.#term) this.begin(term, beganAtMs);
    this.#lastAtMs = atMs;
  }
}
