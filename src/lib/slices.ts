/** Long work in slices, so that whatever else waits in this process gets its turn between them. */

/** Counts work; the unit is the caller's. */
export class Slices {
  readonly #size: number;
  #spent = 0;

  /** @param size how much is done at a stretch. */
  constructor(size: number) {
    this.#size = size;
  }

  /** Adds what was done. @returns true when it is time for `nextTurn`. */
  isOver(cost: number): boolean {
    this.#spent += cost;
    if (this.#spent < this.#size) return false;
    this.#spent = 0;
    return true;
  }
}

/** Resolves after everything else that waits had its turn. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
