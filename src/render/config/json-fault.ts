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

/** What must come next. Those with a bracket are for the members of a list or an object that is open. */
type NextToken = "value" | "value or ]" | "comma or ]" | "name" | "name or }" | "colon" | "comma or }";

const space = /[ \t\n\r]*/y;
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const plainCharacters = /[^"\\\p{Cc}]*/uy;
// JSON allows the control characters from DEL (7F) to 9F.
const otherCharacter = /[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

class JsonScan {
  readonly #text: string;
  /** All that must still come, the next one last. */
  readonly #expected: NextToken[] = ["value"];
  offset = 0;

  constructor(text: string) {
    this.#text = text;
  }

  isJson(): boolean {
    for (;;) {
      this.#skip(space);
      const next = this.#expected.pop();
      if (next === undefined) return this.offset === this.#text.length;
      if (!this.#step(next)) return false;
    }
  }

  #step(next: NextToken): boolean {
    const character = this.#text[this.offset];
    const isClosing = character !== undefined && next.endsWith(` or ${character}`);
    if (isClosing) return this.#take();
    switch (next) {
      case "value":
        return this.#value(character);
      case "value or ]":
        this.#expected.push("comma or ]");
        return this.#value(character);
      case "comma or ]":
        return character === "," && this.#take(next, "value");
      case "comma or }":
        return character === "," && this.#take("name");
      case "colon":
        return character === ":" && this.#take();
      default:
        this.#expected.push("comma or }", "value", "colon");
        return this.#string();
    }
  }

  #value(character: string | undefined): boolean {
    if (character === "{") return this.#take("name or }");
    if (character === "[") return this.#take("value or ]");
    return character === '"' ? this.#string() : this.#skip(scalar);
  }

  #string(): boolean {
    if (this.#text[this.offset] !== '"') return false;
    this.offset++;
    do this.#skip(plainCharacters);
    while (this.#skip(otherCharacter));
    return this.#text[this.offset] === '"' && this.#take();
  }

  #take(...next: readonly NextToken[]): true {
    this.offset++;
    this.#expected.push(...next);
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
