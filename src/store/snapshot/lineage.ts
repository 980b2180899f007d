/**
 * Records which start made the store's last change. The index and the term of the change are not enough: a volume that
 * is reset to an older copy reaches the same index and term again, with other changes. So each start has a random id,
 * its run. If two stores have the same run and index, their histories are equal up to that index.
 *
 * The first records of a start carry its run. As soon as one of them is in the log, later records do not carry it:
 * records of the same term belong to the same run. In a log with several members, the record that begins a leader's
 * term carries the run of that leader. If no record of a term carries a run, an older davit wrote them.
 */

export interface Origin {
  /** Undefined before the first change, and if an older davit made the change. */
  readonly run: string | undefined;
  readonly term: number;
}

export class Lineage {
  #origin: Origin = { run: undefined, term: 0 };

  /** The origin of the last change. */
  get origin(): Origin {
    return this.#origin;
  }

  /** Continues from a snapshot. */
  restore(origin: Origin): void {
    this.#origin = origin;
  }

  /** Takes the origin of the next change. @param run the run in its record, undefined if the record has none. */
  add(run: string | undefined, term: number): void {
    if (run !== undefined || term !== this.#origin.term) this.#origin = { run, term };
  }
}
