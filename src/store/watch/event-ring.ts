/** The history: the newest events with consecutive indexes, bounded by count and by bytes. */

import { assert } from "../../lib/errors.ts";
import type { NodeRecord, StoreEvent } from "../core/node.ts";

/** How many events v2 clients rely on (etcd v3.4.23 v2store/store.go). */
const maxEvents = 1_000;
// With large values, 1,000 events would take a gigabyte. Then the history has fewer events, and a late watcher gets
// error 401.
const presetMaxBytes = 64 * 1024 * 1024;
// The memory of an event besides its texts.
const eventOverheadBytes = 200;

export class EventRing {
  #slots: (StoreEvent | undefined)[] = new Array(maxEvents).fill(undefined);
  readonly #maxBytes: number;
  #oldest = 1;
  #next = 1;
  #bytes = 0;

  constructor(maxBytes = presetMaxBytes) {
    this.#maxBytes = maxBytes;
  }

  /** Index of the oldest kept event; while none is kept, the index of the next event. */
  get oldestIndex(): number {
    return this.#oldest;
  }

  /** Index that the next event will have. */
  get nextIndex(): number {
    return this.#next;
  }

  /** All events of the history, oldest first. */
  get all(): readonly StoreEvent[] {
    return Array.from({ length: this.#next - this.#oldest }, (_, number) => {
      const event = this.at(this.#oldest + number);
      assert(event !== undefined, "What is between oldest and next is kept");
      return event;
    });
  }

  /** The newest events that fit into `maxBytes`, oldest first, and the index of the first of them. */
  newest(maxBytes: number): { readonly oldestIndex: number; readonly events: readonly StoreEvent[] } {
    const { all } = this;
    let bytes = 0;
    let first = all.length;
    for (; first > 0; first--) {
      const event = all[first - 1];
      bytes += event === undefined ? 0 : sizeOf(event);
      if (bytes > maxBytes) break;
    }
    return { oldestIndex: this.#oldest + first, events: all.slice(first) };
  }

  /** Sets the index of the first event of an empty history. */
  beginAt(index: number): void {
    assert(this.#oldest === this.#next, "Only an empty history can begin");
    this.#oldest = index;
    this.#next = index;
  }

  /** Forgets all events. The history begins with the next one. */
  clear(): void {
    this.#slots.fill(undefined);
    this.#oldest = this.#next;
    this.#bytes = 0;
  }

  /** Replaces the history by another one, which nobody may use afterwards. */
  adopt(other: EventRing): void {
    this.#slots = other.#slots;
    this.#oldest = other.#oldest;
    this.#next = other.#next;
    this.#bytes = other.#bytes;
  }

  /** Adds the next event and drops old ones beyond the bounds, but never the new one. */
  add(event: StoreEvent): void {
    assert(event.node.modifiedIndex === this.#next, "Events have consecutive indexes");
    if (this.#next - this.#oldest === maxEvents) this.#drop();
    this.#slots[this.#next % maxEvents] = event;
    this.#next += 1;
    this.#bytes += sizeOf(event);
    while (this.#bytes > this.#maxBytes && this.#oldest < this.#next - 1) this.#drop();
  }

  /** The event with an index; undefined when the history does not have it. */
  at(index: number): StoreEvent | undefined {
    return index >= this.#oldest && index < this.#next ? this.#slots[index % maxEvents] : undefined;
  }

  #drop(): void {
    const event = this.at(this.#oldest);
    assert(event !== undefined, "What is between oldest and next is kept");
    this.#bytes -= sizeOf(event);
    this.#slots[this.#oldest % maxEvents] = undefined;
    this.#oldest += 1;
  }
}

function sizeOf({ node, prevNode }: StoreEvent): number {
  return eventOverheadBytes + textBytes(node) + (prevNode === undefined ? 0 : textBytes(prevNode));
}

// V8 stores a character in one or two bytes. This always counts two.
function textBytes({ path, value = "" }: NodeRecord): number {
  return 2 * (path.length + value.length);
}
