/**
 * How the store names and holds the texts of Secrets. The last part of a text's path is its name, which also says
 * whether the text is encrypted:
 *
 *   <digest>                           in the clear; the digest of the text by a key of the ledger
 *   encrypted-1-<key id>-<digest>      encrypted with the path as context; the digest of the text by the same key
 *
 * Anybody may read the names, so no name is a plain hash: that of a short password is as good as the password. Only
 * davit 0.2 and older used the SHA-256 of a text in the clear; davit can read such texts.
 *
 * So a text is encrypted once. It gets another name, and is written again, if it changes or another key encrypts it.
 */

/** What the store has of a text: the text, or why davit cannot read it and what to do. */
export type SecretText = { readonly text: string } | { readonly problem: string };

/** Reads texts of Secrets from the store. */
export interface SecretReader {
  /** @param path see `secretPath`. @param stored what the store has at this path. */
  decode(path: string, stored: string): SecretText;
}

/** Names, writes and reads texts of Secrets. */
export interface SecretTexts extends SecretReader {
  /** The name that a text gets now. */
  nameOf(text: string): string;
  /** Every name that the text may have in the store: by each key, and in the clear. */
  namesOf(text: string): readonly string[];
  /** Returns what the store holds for a text. */
  encode(path: string, text: string): string;
}

const encryptedPrefix = "encrypted-";
const encryptedName = /^encrypted-1-([0-9a-f]{8})-[0-9a-f]{64}$/;

/** @param digest of the text by the key. */
export function encryptedSecretName(keyId: string, digest: string): string {
  return `${encryptedPrefix}1-${keyId}-${digest}`;
}

/**
 * Returns the key of an encrypted text.
 * @returns undefined for a text in the clear, `newer` for a name of a later davit.
 */
export function keyOfSecret(pathOrName: string): string | undefined {
  const name = pathOrName.slice(pathOrName.lastIndexOf("/") + 1);
  if (!name.startsWith(encryptedPrefix)) return undefined;
  const [, keyId = newerKey] = encryptedName.exec(name) ?? [];
  return keyId;
}

/** In place of a key's id: a later davit encrypted the text, in a way that this one does not know. */
const newerKey = "newer";

/** Says why a text cannot be read without its key, and what to do. */
export function lacksKey(keyId: string): string {
  if (keyId === newerKey) return "a later davit encrypted it: start that davit";
  return `it is encrypted with key ${keyId}, which is not here: put this key into the file of --secrets-key-file`;
}

/** Reads texts without any key. */
export const clearReader: SecretReader = {
  decode: (path, stored) => {
    const keyId = keyOfSecret(path);
    return keyId === undefined ? { text: stored } : { problem: lacksKey(keyId) };
  },
};

/**
 * Texts of Secrets in the clear.
 * @param digest returns 64 hexadecimal digits for a text.
 * @param older digests by which texts were named before.
 */
export function clearTexts(digest: (text: string) => string, ...older: readonly (typeof digest)[]): SecretTexts {
  return {
    ...clearReader,
    nameOf: digest,
    namesOf: (text) => [digest, ...older].map((each) => each(text)),
    encode: (_, text) => text,
  };
}
