/** A queue with limits. Beyond them it drops its oldest items. Items are numbered in the order of their arrival. */

interface BoundedQueueOptions<Item> {
  readonly maxItems: number;
  /** Limits the sum of `bytesOf`. */
  readonly maxBytes: number;
  /** Estimates the memory of an item, which must not change while the item waits. */
  readonly bytesOf: (item: Item) => number;
  /** Called for each item that the limits drop. */
  readonly dropped: (item: Item) => void;
}

export class BoundedQueue<Item> {
  readonly #options: BoundedQueueOptions<Item>;
  /** By number. An array would move all items for each one that leaves. */
  readonly #items = new Map<number, Item>();
  #first = 0;
  #next = 0;
  #bytes = 0;

  constructor(options: BoundedQueueOptions<Item>) {
    this.#options = options;
  }

  get count(): number {
    return this.#items.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The number of the oldest item, or of the next one in an empty queue. */
  get first(): number {
    return this.#first;
  }

  /** The number of the next item: how many items were ever added. */
  get next(): number {
    return this.#next;
  }

  /** Returns an item by its number; undefined if it has left the queue. */
  at(number: number): Item | undefined {
    return this.#items.get(number);
  }

  /** Adds an item as the newest. */
  add(item: Item): void {
    const { maxItems, maxBytes, bytesOf, dropped } = this.#options;
    this.#items.set(this.#next++, item);
    this.#bytes += bytesOf(item);
    while (this.#items.size > maxItems || this.#bytes > maxBytes) {
      const oldest = this.shift();
      if (oldest !== undefined) dropped(oldest);
    }
  }

  /** Removes and returns the oldest item. */
  shift(): Item | undefined {
    const item = this.#items.get(this.#first);
    if (item === undefined) return undefined;
    this.#items.delete(this.#first++);
    this.#bytes -= this.#options.bytesOf(item);
    return item;
  }
}
