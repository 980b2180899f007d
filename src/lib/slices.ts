/** Runs long work in slices, so that other work in this process gets its turn between them. */

/** Counts work, in a unit of the caller's choice. */
export class Slices {
  readonly #size: number;
  #spent = 0;

  /** @param size the amount of work in one slice. */
  constructor(size: number) {
    this.#size = size;
  }

  /** Adds finished work. @returns true if the slice is full, so that it is time for `nextTurn`. */
  isOver(cost: number): boolean {
    this.#spent += cost;
    if (this.#spent < this.#size) return false;
    this.#spent = 0;
    return true;
  }
}

/** Resolves in a later turn of the event loop, after the other waiting work. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Runs work to its end. After each yield it waits for `nextTurn`.
 * @returns the work's result, without a promise if the work did not yield.
 */
export function inSlices<Result>(work: Generator<undefined, Result>): Result | Promise<Result> {
  const slice = work.next();
  return slice.done === true ? slice.value : goOn(work);
}

async function goOn<Result>(work: Generator<undefined, Result>): Promise<Result> {
  for (;;) {
    await nextTurn();
    const slice = work.next();
    if (slice.done === true) return slice.value;
  }
}

/**
 * Like `nextTurn`, for several tasks. In each turn only some of the tasks continue, so other work does not wait for one
 * slice of each task.
 */
export class Turns {
  readonly #size: number;
  readonly #waiting: { readonly cost: number; readonly begin: () => void }[] = [];

  /** @param size the amount of work in one turn of the event loop. A larger slice has a turn of its own. */
  constructor(size = 1) {
    this.#size = size;
  }

  /**
   * Resolves when it is this caller's turn: after all earlier callers and the other waiting work.
   * @param cost the work in the caller's slice, in the unit of `size`.
   */
  next(cost = 1): Promise<void> {
    return new Promise((begin) => {
      this.#waiting.push({ cost, begin });
      if (this.#waiting.length === 1) this.#schedule();
    });
  }

  #schedule(): void {
    setImmediate(() => {
      let left = this.#size;
      for (let next = this.#waiting.shift(); next !== undefined; ) {
        next.begin();
        left -= next.cost;
        const [following] = this.#waiting;
        next = following !== undefined && following.cost <= left ? this.#waiting.shift() : undefined;
      }
      if (this.#waiting.length > 0) this.#schedule();
    });
  }
}
