/**
 * Keeps results made from texts (compiled templates, verdicts on configs) within a number of bytes; the least recently
 * used are dropped first. The text is the key, so equal texts of many Profiles and machines share one entry, and a
 * changed text is a new one.
 */

import { LRUCache } from "lru-cache";

export class TextCache<Made extends object> {
  readonly #made: LRUCache<string, Made>;

  /** @param options.limitBytes of text; the results take more on top. */
  constructor({ limitBytes }: { readonly limitBytes: number }) {
    this.#made = new LRUCache({ maxSize: limitBytes, sizeCalculation: (_made, text) => bytesOf(text) });
  }

  /** Bytes of text kept now. */
  get sizeBytes(): number {
    return this.#made.calculatedSize;
  }

  /** True when a result of this text is kept. */
  has(text: string): boolean {
    return this.#made.has(text);
  }

  /**
   * The kept result of this text, or `make(text)`, kept from now on. Nothing is kept when `make` throws, or for a text
   * beyond the limit.
   */
  get(text: string, make: (text: string) => Made): Made {
    const known = this.#made.get(text);
    if (known !== undefined) return known;
    const made = make(text);
    this.#made.set(text, made);
    return made;
  }
}

/** Bytes in memory: V8 keeps one byte for each unit of Latin-1 text and two otherwise; two is never too little. */
function bytesOf(text: string): number {
  // The library refuses a size of 0.
  return text.length * 2 || 1;
}
