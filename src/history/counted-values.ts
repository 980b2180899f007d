/** Values that many rows have in common: each is kept once, by a number, for as long as something uses it. */

export class CountedValues<Value> {
  /** By number; 0 stands for no value, and is never given out. */
  readonly #values: (Value | undefined)[] = [undefined];
  readonly #uses: number[] = [0];
  readonly #free: number[] = [];

  /** Takes a value in, used once. */
  add(value: Value): number {
    const id = this.#free.pop() ?? this.#values.length;
    this.#values[id] = value;
    this.#uses[id] = 1;
    return id;
  }

  get(id: number): Value | undefined {
    return this.#values[id];
  }

  /** Counts one more use of a value; of number 0 there is nothing to count. */
  use(id: number): number {
    if (id !== 0) this.#uses[id] = (this.#uses[id] ?? 0) + 1;
    return id;
  }

  /** Takes one use back. @returns the value when that was its last one, which forgets it. */
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
