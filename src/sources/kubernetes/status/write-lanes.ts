/**
 * Decides how many writes run at the same time: half as many after a 429, and one more after 20 successes. So davit
 * uses a large API server fully, but does not overload a small one. TCP does the same with a network (RFC 5681, 3.1).
 * Pure.
 */

// Twenty writes take a few tenths of a second. A peak of other clients lasts about as long.
const successesForOneMore = 20;

export class WriteLanes {
  readonly #most: number;
  #count: number;
  #successes = 0;

  /** @param most the maximum number of lanes, which is also the first number. */
  constructor(most: number) {
    this.#most = most;
    this.#count = most;
  }

  get count(): number {
    return this.#count;
  }

  throttled(): void {
    this.#count = Math.max(1, Math.floor(this.#count / 2));
    this.#successes = 0;
  }

  succeeded(): void {
    this.#successes += 1;
    if (this.#successes < successesForOneMore) return;
    this.#count = Math.min(this.#most, this.#count + 1);
    this.#successes = 0;
  }
}
