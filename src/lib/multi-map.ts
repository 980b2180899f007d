/** Maps each key to one or several entries. */

/**
 * The entries of a key. Nearly every key has only one: the map then holds the entry itself. With thousands of keys, a
 * look-up waits for memory at each further object that it reads.
 */
type Slot<Entry extends object> = Entry | Several<Entry>;

/** Two or more entries with the same key. */
export class Several<Entry extends object> {
  readonly entries: readonly Entry[];

  constructor(entries: readonly Entry[]) {
    this.entries = entries;
  }
}

export class MultiMap<Entry extends object> {
  readonly #slots = new Map<string, Slot<Entry>>();

  /** The number of keys. */
  get size(): number {
    return this.#slots.size;
  }

  /** Returns the entries of a key as they are stored; undefined for none. */
  slot(key: string): Slot<Entry> | undefined {
    return this.#slots.get(key);
  }

  /** Returns the entries of a key, in the order in which they were added. */
  of(key: string): readonly Entry[] {
    const slot = this.#slots.get(key);
    if (slot === undefined) return [];
    return slot instanceof Several ? slot.entries : [slot];
  }

  /** Adds an entry, unless the key has it. */
  add(key: string, entry: Entry): void {
    const entries = this.of(key);
    if (!entries.includes(entry)) this.#set(key, [...entries, entry]);
  }

  /** Removes an entry from a key. @param entry the same object that was added. */
  remove(key: string, entry: Entry): void {
    this.#set(
      key,
      this.of(key).filter((other) => other !== entry),
    );
  }

  #set(key: string, entries: readonly Entry[]): void {
    const [first, ...others] = entries;
    if (first === undefined) this.#slots.delete(key);
    else this.#slots.set(flat(key), others.length === 0 ? first : new Several(entries));
  }
}

/** Returns a copy of a text. A slice would keep the whole text in memory, and each comparison would read it there. */
function flat(text: string): string {
  return [text.slice(0, 1), text.slice(1)].join("");
}
