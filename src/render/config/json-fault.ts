/**
 * Finds the first JSON mistake of a text. It does not use `JSON.parse`, whose messages quote the text and do not always
 * name the place.
 */

import { positionAt, type TextPosition } from "../core/text-position.ts";

/**
 * Returns the place of the first mistake; undefined for valid JSON. If the text ends too early, that is the place after
 * its end.
 */
export function findJsonFault(text: string): TextPosition | undefined {
  const scan = new JsonScan(text);
  return scan.isJson() ? undefined : positionAt(text, scan.offset);
}

/** The tokens that may follow. */
type NextToken = "value" | "value or ]" | "name" | "name or }" | "colon" | "comma or end";

const space = /[ \t\n\r]*/y;
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const plainCharacters = /[^"\\\p{Cc}]*/uy;
// JSON allows the control characters from DEL (7F) to 9F.
const otherCharacter = /[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

class JsonScan {
  readonly #text: string;
  /** The brackets that are open, the innermost last. */
  readonly #open: ("[" | "{")[] = [];
  #expected: NextToken = "value";
  offset = 0;

  constructor(text: string) {
    this.#text = text;
  }

  isJson(): boolean {
    for (;;) {
      this.#skip(space);
      if (this.offset === this.#text.length) return this.#expected === "comma or end" && this.#open.length === 0;
      if (!this.#step()) return false;
    }
  }

  #step(): boolean {
    const character = this.#text[this.offset];
    switch (this.#expected) {
      case "colon":
        return character === ":" && this.#take("value");
      case "comma or end":
        return this.#goOn(character);
      case "name or }":
        return character === "}" ? this.#close() : this.#string("colon");
      case "name":
        return this.#string("colon");
      case "value or ]":
        return character === "]" ? this.#close() : this.#value(character);
      case "value":
        return this.#value(character);
    }
  }

  #goOn(character: string | undefined): boolean {
    const inside = this.#open.at(-1);
    if (character === "," && inside !== undefined) return this.#take(inside === "{" ? "name" : "value");
    return character === (inside === "{" ? "}" : "]") && inside !== undefined && this.#close();
  }

  #value(character: string | undefined): boolean {
    if (character === "{" || character === "[") {
      this.#open.push(character);
      return this.#take(character === "{" ? "name or }" : "value or ]");
    }
    if (character === '"') return this.#string("comma or end");
    this.#expected = "comma or end";
    return this.#skip(scalar);
  }

  #string(next: NextToken): boolean {
    if (this.#text[this.offset] !== '"') return false;
    this.offset++;
    do this.#skip(plainCharacters);
    while (this.#skip(otherCharacter));
    return this.#text[this.offset] === '"' && this.#take(next);
  }

  #close(): boolean {
    this.#open.pop();
    return this.#take("comma or end");
  }

  #take(next: NextToken): boolean {
    this.offset++;
    this.#expected = next;
    return true;
  }

  /** Skips a match of the pattern at `offset`. @returns false if there is none. */
  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.offset;
    const length = pattern.exec(this.#text)?.[0].length ?? 0;
    this.offset += length;
    return length > 0;
  }
}
