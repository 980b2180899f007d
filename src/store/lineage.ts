/**
 * Which start of the store made its last change. Index and term do not say it: a volume that is set back to an older
 * copy reaches the same index and term again, with other changes. So each start has a random id, its run. Stores with equal
 * run and index have one history up to there.
 *
 * The first records of a start carry its run, until one of them is in the log; those behind it are of the same run while
 * they are of the same term. A term without a run is that of a davit that knew none.
 */

export interface Origin {
  /** Undefined before the first change, and where the davit that made it named no run. */
  readonly run: string | undefined;
  readonly term: number;
}

export class Lineage {
  #origin: Origin = { run: undefined, term: 0 };

  /** Of the last record. */
  get origin(): Origin {
    return this.#origin;
  }

  /** Goes on from a snapshot. */
  restore(origin: Origin): void {
    this.#origin = origin;
  }

  /** Takes the next record in. @param run as the record has it. */
  add(run: string | undefined, term: number): void {
    if (run !== undefined || term !== this.#origin.term) this.#origin = { run, term };
  }
}
