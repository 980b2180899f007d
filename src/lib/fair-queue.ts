/**
 * A queue that serves its users in turn, so that a user with many items does not delay the others. An item has a list
 * of names, from the widest to the narrowest, such as a namespace and one of its clients. On each level the names take
 * turns. Items with equal names keep their order.
 */

/** The waiting items of one name. */
interface ClientLine<Item> {
  readonly items: Item[];
  /** The lines of narrower names. The first one has the next turn. */
  readonly below: Map<string, ClientLine<Item>>;
}

export class FairQueue<Item> {
  readonly #line: ClientLine<Item> = { items: [], below: new Map() };
  #length = 0;

  /** The number of waiting items. */
  get length(): number {
    return this.#length;
  }

  /** Adds an item after those with the same names. */
  push(names: readonly string[], item: Item): void {
    let line = this.#line;
    for (const name of names) {
      const next = line.below.get(name) ?? { items: [], below: new Map() };
      line.below.set(name, next);
      line = next;
    }
    line.items.push(item);
    this.#length += 1;
  }

  /** Removes and returns the item whose turn is next; undefined if no item waits. */
  shift(): Item | undefined {
    if (this.#length === 0) return undefined;
    this.#length -= 1;
    return take(this.#line);
  }
}

/** A limited number of places. Those who wait for one take turns, as in a `FairQueue`. */
export class Places {
  readonly #waiting = new FairQueue<() => void>();
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  /** How many wait for a place. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Takes a free place. @returns false if there is none. Otherwise the caller must call `leave`. */
  tryEnter(): boolean {
    if (this.#free === 0) return false;
    this.#free -= 1;
    return true;
  }

  /** Takes a place, after a wait if necessary. The caller must call `leave`. @param names as of `FairQueue.push`. */
  async enter(names: readonly string[]): Promise<void> {
    if (!this.tryEnter()) await this.#turn(names);
  }

  /** As `enter`. @returns a function that calls `leave`. Idempotent. */
  async hold(names: readonly string[]): Promise<() => void> {
    if (!this.tryEnter()) await this.#turn(names);
    let isHeld = true;
    return () => {
      if (isHeld) this.leave();
      isHeld = false;
    };
  }

  /** Gives a place to the next one that waits. */
  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }

  /** Does work in a place. @param names as of `FairQueue.push`. */
  async run<Result>(names: readonly string[], work: () => Promise<Result>): Promise<Result> {
    if (!this.tryEnter()) await this.#turn(names);
    try {
      return await work();
    } finally {
      this.leave();
    }
  }

  #turn(names: readonly string[]): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(names, resolve));
  }
}

function take<Item>(line: ClientLine<Item>): Item | undefined {
  if (line.items.length > 0) return line.items.shift();
  for (const [name, next] of line.below) {
    const item = take(next);
    // The name moves to the end. If nothing waits under it any more, it is removed.
    line.below.delete(name);
    if (next.items.length > 0 || next.below.size > 0) line.below.set(name, next);
    return item;
  }
  return undefined;
}
