/** Runs long work in slices, so that other work in this process gets its turn between them. */

/** Counts work; the unit is the caller's. */
export class Slices {
  readonly #size: number;
  #spent = 0;

  /** @param size how much is done in one slice. */
  constructor(size: number) {
    this.#size = size;
  }

  /** Adds finished work. @returns true when it is time for `nextTurn`. */
  isOver(cost: number): boolean {
    this.#spent += cost;
    if (this.#spent < this.#size) return false;
    this.#spent = 0;
    return true;
  }
}

/** Resolves after all other waiting work has had its turn. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Runs work to its end; at each yield all other work has its turn.
 * @returns the work's result, at once if it did not yield.
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
 * As `nextTurn`, for several tasks: only one of them continues at a time, so that other work waits for one slice only.
 */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  readonly #restOf: (waiting: number) => number;

  /** @param restOf how many turns of the event loop pass between two tasks, by the number of waiting tasks. */
  constructor(restOf: (waiting: number) => number = () => 0) {
    this.#restOf = restOf;
  }

  /** Resolves after all other waiting work, and all earlier callers, have had their turn. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) this.#schedule();
    });
  }

  #schedule(rest = 0): void {
    setImmediate(() => {
      if (rest > 0) {
        this.#schedule(rest - 1);
        return;
      }
      this.#waiting.shift()?.();
      if (this.#waiting.length > 0) this.#schedule(this.#restOf(this.#waiting.length));
    });
  }
}
