/** Keys of Secrets for tests: each differs from the others, and is the same in every run. */

import { encryptedTexts } from "../../src/app/core/secret-keys.ts";
import { TextKey } from "../../src/lib/files/text-key.ts";
import type { SecretTexts } from "../../src/model/objects/secret-texts.ts";

/** The line of a file of keys. */
export function keyLine(number: number): string {
  return Buffer.alloc(32, number).toString("base64");
}

export function textKey(number: number): TextKey {
  return new TextKey(Buffer.from(keyLine(number), "base64"));
}

/** Texts by keys that a test changes, as davit does when their file changes. */
export class ChangingTexts implements SecretTexts {
  #texts: SecretTexts;

  /** @param numbers of the keys, the first one encrypts; none for texts in the clear. */
  constructor(...numbers: readonly number[]) {
    this.#texts = encryptedTexts(numbers.map(textKey));
  }

  change(...numbers: readonly number[]): void {
    this.#texts = encryptedTexts(numbers.map(textKey));
  }

  nameOf(text: string): string {
    return this.#texts.nameOf(text);
  }

  namesOf(text: string): readonly string[] {
    return this.#texts.namesOf(text);
  }

  encode(path: string, text: string): string {
    return this.#texts.encode(path, text);
  }

  decode(path: string, stored: string) {
    return this.#texts.decode(path, stored);
  }
}
