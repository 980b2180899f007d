/**
 * Keeps results that were made from texts, such as compiled templates and checks of configs, up to a number of bytes.
 * It drops the least recently used results first. The text is the key, so equal texts of many Profiles and machines
 * share one result, and a changed text gets a new one.
 */

import { LRUCache } from "lru-cache";

export class TextCache<Made extends object> {
  readonly #made: LRUCache<string, Made>;

  /** @param options.limitBytes limits the size of the texts; the results take more memory. */
  constructor({ limitBytes }: { readonly limitBytes: number }) {
    this.#made = new LRUCache({ maxSize: limitBytes, sizeCalculation: (_made, text) => bytesOf(text) });
  }

  /** The size of the kept texts. */
  get sizeBytes(): number {
    return this.#made.calculatedSize;
  }

  /** True if the cache has a result for this text. */
  has(text: string): boolean {
    return this.#made.has(text);
  }

  /**
   * Returns the kept result for this text. If there is none, it calls `make` and keeps the result, unless the text is
   * larger than the limit.
   */
  get(text: string, make: (text: string) => Made): Made {
    const known = this.#made.get(text);
    if (known !== undefined) return known;
    const made = make(text);
    this.#made.set(text, made);
    return made;
  }
}

/** Returns a text's size in memory. V8 needs one byte for a unit of Latin-1 text, else two; this always counts two. */
function bytesOf(text: string): number {
  // The library refuses a size of 0.
  return text.length * 2 || 1;
}
