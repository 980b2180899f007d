/** Strings that many requests share: endpoints, Groups, paths. Each is stored once, while something uses it. */

import { CountedValues } from "./counted-values.ts";

/** Memory of an entry besides its characters: two arrays, a map, the string's own head. */
const entryBytes = 120;

export class SharedTexts {
  readonly #ids = new Map<string, number>();
  readonly #texts = new CountedValues<string>();
  #sizeBytes = 0;

  /** Memory of all texts, estimated. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /**
   * Counts one more use of a string and returns its number; 0 for undefined.
   * @param likely a first guess of the number: comparing is quicker than a lookup.
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

/** A slice of a request's target retains the whole target in memory (V8, sliced strings); a copy does not. */
export function ownCopy(text: string): string {
  return Buffer.from(text).toString();
}

/** V8 stores one byte for each unit of a Latin-1 string and two otherwise. This always counts two. */
function sizeOf(text: string): number {
  return text.length * 2 + entryBytes;
}
