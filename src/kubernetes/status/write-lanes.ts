/**
 * How many writes run at once: half as many after a 429 of the API server, one more after a row of successes. So the
 * same writer uses a large API server fully, and gets through with a small one, as TCP does with a network (RFC 5681,
 * 3.1). Pure.
 */

// Adding a lane takes some tenths of a second, about as long as a peak of other clients lasts.
const successesForOneMore = 20;

export class WriteLanes {
  readonly #most: number;
  #count: number;
  #successes = 0;

  /** @param most the number of lanes at first, and the maximum. */
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
