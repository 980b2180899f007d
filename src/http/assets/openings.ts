/**
 * Limits how many assets are opened, checked or closed at one time. Further requests wait for their turn. Without this
 * limit, thousands of requests at once would open all their files before the first of them waits for a place.
 */
export class Openings {
  readonly #limit: number;
  readonly #waiting: (() => void)[] = [];
  #count = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Waits for a place. @returns a function that gives the place back. Idempotent. */
  async enter(): Promise<() => void> {
    if (this.#count < this.#limit) this.#count++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    let isIn = true;
    return () => {
      if (isIn) this.#leave();
      isIn = false;
    };
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#count--;
    else next();
  }
}
