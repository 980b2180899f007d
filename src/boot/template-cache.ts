/**
 * Keeps what is made from template texts (compiled templates) within a number of bytes: the least recently used go
 * first. Keyed by the text itself, so equal texts of many Profiles share one entry, and a changed text is a new one.
 */

/**
 * 64 MiB of template text: 64 Profiles whose templates have the largest allowed size of 1 MiB, or 30,000 of the usual
 * 2 KiB. Compiled code takes about ten times its text, so this bounds the cache to well under 1 GiB even then.
 */
export const templateCacheBytes = 64 * 1024 * 1024;

export class TemplateCache<Made> {
  readonly #limitBytes: number;
  /** In order of last use, oldest first: a Map keeps the order of insertion. */
  readonly #entries = new Map<string, Made>();
  #sizeBytes = 0;

  constructor({ limitBytes = templateCacheBytes }: { readonly limitBytes?: number } = {}) {
    this.#limitBytes = limitBytes;
  }

  /** Bytes of text kept now. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** What was made of this text, or `make(text)`, kept from now on. Nothing is kept when `make` throws. */
  get(text: string, make: (text: string) => Made): Made {
    const known = this.#entries.get(text);
    if (known !== undefined) {
      this.#entries.delete(text);
      this.#entries.set(text, known);
      return known;
    }
    const made = make(text);
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
