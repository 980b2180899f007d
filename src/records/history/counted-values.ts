/** Stores values that many rows share. Each value is stored once, under a number, as long as it has a use. */

export class CountedValues<Value> {
  /** The values by number. Number 0 means no value and is never assigned. */
  readonly #values: (Value | undefined)[] = [undefined];
  readonly #uses: number[] = [0];
  readonly #free: number[] = [];

  /** Adds a value and counts one use of it. @returns its number. */
  add(value: Value): number {
    const id = this.#free.pop() ?? this.#values.length;
    this.#values[id] = value;
    this.#uses[id] = 1;
    return id;
  }

  get(id: number): Value | undefined {
    return this.#values[id];
  }

  /** Counts one more use of a value; number 0 is not counted. */
  use(id: number): number {
    if (id !== 0) this.#uses[id] = (this.#uses[id] ?? 0) + 1;
    return id;
  }

  /** Removes one use. @returns the value if this was its last use: it is no longer stored. */
  release(id: number): Value | undefined {
    if (id === 0) return undefined;
    const uses = (this.#uses[id] ?? 0) - 1;
    this.#uses[id] = uses;
    if (uses > 0) return undefined;
    const value = this.#values[id];
    this.#values[id] = undefined;
    this.#free.push(id);
    return value;
  }
}
