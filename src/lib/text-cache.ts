/**
 * Keeps results made from texts (compiled templates, verdicts on configs) within a number of bytes; the least recently
 * used are dropped first. The text is the key, so equal texts of many Profiles and machines share one entry, and a
 * changed text is a new one.
 */

export class TextCache<Made> {
  readonly #limitBytes: number;
  /** In order of last use, oldest first: a Map keeps the order of insertion. */
  readonly #entries = new Map<string, Made>();
  #sizeBytes = 0;

  /** @param options.limitBytes of text; the results take more on top. */
  constructor({ limitBytes }: { readonly limitBytes: number }) {
    this.#limitBytes = limitBytes;
  }

  /** Bytes of text kept now. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** True when a result of this text is kept. */
  has(text: string): boolean {
    return this.#entries.has(text);
  }

  /** The kept result of this text, or `make(text)`, kept from now on. Nothing is kept when `make` throws. */
  get(text: string, make: (text: string) => Made): Made {
    const known = this.#entries.get(text);
    if (known !== undefined) {
      this.#entries.delete(text);
      this.#entries.set(text, known);
      return known;
    }
    const made = make(text);
    // It would drive out everything else, and then itself.
    if (bytesOf(text) > this.#limitBytes) return made;
    this.#entries.set(text, made);
    this.#sizeBytes += bytesOf(text);
    this.#evict();
    return made;
  }

  #evict(): void {
    for (const text of this.#entries.keys()) {
      if (this.#sizeBytes <= this.#limitBytes) return;
      this.#entries.delete(text);
      this.#sizeBytes -= bytesOf(text);
    }
  }
}

/** Bytes in memory: V8 keeps one byte for each unit of Latin-1 text and two otherwise; two is never too little. */
function bytesOf(text: string): number {
  return text.length * 2;
}
