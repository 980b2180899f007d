/** Encrypts the texts of Secrets by keys. */

import { hash } from "node:crypto";
import { assert } from "../../lib/errors.ts";
import type { TextKey } from "../../lib/files/text-key.ts";
import {
  clearReader,
  clearTexts,
  encryptedSecretName,
  keyOfSecret,
  type SecretTexts,
} from "../../model/objects/secret-texts.ts";

const sha256 = (text: string) => hash("sha256", text, "hex");

/**
 * Returns how texts are stored with these keys: the first one encrypts, and each decrypts. A text in the clear can be
 * read, too. Without keys, texts are stored in the clear.
 * @param digest names texts in the clear.
 */
export function encryptedTexts(keys: readonly TextKey[], digest = sha256): SecretTexts {
  const inTheClear = clearTexts(digest, sha256);
  const keyOf = (path: string) => keys.find(({ id }) => id === keyOfSecret(path));
  const [first] = keys;
  if (first === undefined) return inTheClear;
  return {
    nameOf: (text) => nameBy(first, text),
    namesOf: (text) => [...inTheClear.namesOf(text), ...keys.map((key) => nameBy(key, text))],
    encode: (path, text) => {
      const key = keyOf(path);
      assert(key !== undefined, "A text is named and encrypted in one turn, and keys change between turns");
      return key.encrypt(text, path);
    },
    decode: (path, stored) => {
      const key = keyOf(path);
      if (key === undefined) return clearReader.decode(path, stored);
      const text = key.decrypt(stored, path);
      const problem = `the stored text is not what key ${key.id} encrypted for it: davit replaces it at the next sync`;
      return text === undefined ? { problem } : { text };
    },
  };
}

function nameBy(key: TextKey, text: string): string {
  return encryptedSecretName(key.id, key.digest(text));
}
