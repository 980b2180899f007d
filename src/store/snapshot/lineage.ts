/**
 * Identifies the start of the store that made its last change. Index and term are not enough: a volume that is reset to
 * an older copy reaches the same index and term again, with other changes. So each start has a random id, its run.
 * Stores with equal run and index have one history up to there.
 *
 * The first records of a start carry its run, until one of them is in the log. Later records of the same term are of
 * the same run. A term without a run comes from an older davit, which wrote none.
 */

export interface Origin {
  /** Undefined before the first change, and if an older davit made the change. */
  readonly run: string | undefined;
  readonly term: number;
}

export class Lineage {
  #origin: Origin = { run: undefined, term: 0 };

  /** Of the last record. */
  get origin(): Origin {
    return this.#origin;
  }

  /** Continues from a snapshot. */
  restore(origin: Origin): void {
    this.#origin = origin;
  }

  /** Takes the next record in. @param run as the record has it. */
  add(run: string | undefined, term: number): void {
    if (run !== undefined || term !== this.#origin.term) this.#origin = { run, term };
  }
}
