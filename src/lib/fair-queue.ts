/**
 * A queue in which nobody waits for all items of another. Names identify who waits, from the widest to the narrowest,
 * such as a tenant and one of its clients. The names of a level take turns. Items with equal names keep their order.
 */

interface ClientLine<Item> {
  readonly items: Item[];
  /** The next turn is that of the first one. */
  readonly below: Map<string, ClientLine<Item>>;
}

export class FairQueue<Item> {
  readonly #line: ClientLine<Item> = { items: [], below: new Map() };
  #length = 0;

  /** How many wait. */
  get length(): number {
    return this.#length;
  }

  /** Adds an item at the end of its line. */
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

  /** Takes the next item in turn; undefined when none waits. */
  shift(): Item | undefined {
    if (this.#length === 0) return undefined;
    this.#length -= 1;
    return take(this.#line);
  }
}

function take<Item>(line: ClientLine<Item>): Item | undefined {
  if (line.items.length > 0) return line.items.shift();
  for (const [name, next] of line.below) {
    const item = take(next);
    // The name moves behind the others, or leaves.
    line.below.delete(name);
    if (next.items.length > 0 || next.below.size > 0) line.below.set(name, next);
    return item;
  }
  return undefined;
}
