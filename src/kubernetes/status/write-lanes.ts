/**
 * How many writes go on at once: half as many after the API server said that it has no place for them (429), one more
 * after a row of good ones. So the same writer uses what a large API server gives, and gets through with a small one,
 * as TCP does with a network (RFC 5681, 3.1). Pure.
 */

// One lane more takes some tenths of a second: a peak of others lasts about that long.
const successesForOneMore = 20;

export class WriteLanes {
  readonly #most: number;
  #count: number;
  #successes = 0;

  /** @param most how many there are at first, and never more. */
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
