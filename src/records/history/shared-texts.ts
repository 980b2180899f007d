/** Stores strings that many requests share: endpoints, Groups, paths. Each is stored once, as long as it has a use. */

import { CountedValues } from "./counted-values.ts";

/** Estimated memory of an entry besides its characters: in two arrays, in a map, and the string's header. */
const entryBytes = 120;

export class SharedTexts {
  readonly #ids = new Map<string, number>();
  readonly #texts = new CountedValues<string>();
  #sizeBytes = 0;

  /** Estimated memory of all texts. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /**
   * Counts one more use of a string and returns its number; 0 for undefined.
   * @param likely the number that the string probably has. To compare its string is quicker than a lookup.
   */
  take(text: string | undefined, likely: number): number {
    if (text === undefined) return 0;
    if (this.#texts.get(likely) === text) return this.#texts.use(likely);
    const known = this.#ids.get(text);
    if (known !== undefined) return this.#texts.use(known);
    const own = ownCopy(text);
    const id = this.#texts.add(own);
    this.#ids.set(own, id);
    this.#sizeBytes += sizeOf(own);
    return id;
  }

  release(id: number): void {
    const text = this.#texts.release(id);
    if (text === undefined) return;
    this.#ids.delete(text);
    this.#sizeBytes -= sizeOf(text);
  }

  get(id: number): string | undefined {
    return this.#texts.get(id);
  }
}

/** Copies a string. A slice of a request's target would keep the whole target in memory (V8's sliced strings). */
export function ownCopy(text: string): string {
  return Buffer.from(text).toString();
}

/** Estimates a string's memory. V8 needs one byte for a unit of a Latin-1 string, else two. This always counts two. */
function sizeOf(text: string): number {
  return text.length * 2 + entryBytes;
}
