/** The texts of Secrets as the store has them, by the Profiles that serve them. */

import { hash } from "node:crypto";
import type { DocumentChange } from "../../model/feed.ts";
import { documentAddress } from "../../model/objects/documents.ts";
import { clearTexts, type SecretTexts } from "../../model/objects/secret-texts.ts";

/** What the store holds of a Secret's text. */
export interface StoredSecret {
  /** False if davit lacks the key, or cannot decrypt the text by it. */
  readonly isReadable: boolean;
  /** Reads the text, with the name that it gets now; undefined if it is not readable. */
  readonly read: () => NamedText | undefined;
}

/** A Secret's text, and its name in the store. */
interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** How the texts are stored. */
export type StoredTexts = Pick<SecretTexts, "nameOf" | "encode" | "decode">;

const inTheClear: StoredTexts = clearTexts((text) => hash("sha256", text, "hex"));
const none: ReadonlyMap<string, StoredSecret> = new Map();

export class StoredSecrets {
  readonly #texts: StoredTexts;
  /** By namespace/profile, then by the name of the text. */
  readonly #secrets = new Map<string, Map<string, StoredSecret>>();

  constructor(texts = inTheClear) {
    this.#texts = texts;
  }

  clear(): void {
    this.#secrets.clear();
  }

  /** Returns the texts of a Profile, by their names. */
  of(namespace: string, profile: string): ReadonlyMap<string, StoredSecret> {
    return this.#secrets.get(`${namespace}/${profile}`) ?? none;
  }

  /** @param stored what the store has at the path of a text now; undefined if it was removed. */
  take(path: string, stored: string | undefined): void {
    const address = documentAddress(path);
    if (address?.kind !== "secret") return;
    const id = `${address.namespace}/${address.profile}`;
    const secrets = this.#secrets.get(id) ?? new Map<string, StoredSecret>();
    if (stored === undefined) secrets.delete(address.text);
    else secrets.set(address.text, this.#stored(path, stored));
    if (secrets.size === 0) this.#secrets.delete(id);
    else this.#secrets.set(id, secrets);
  }

  /** Encrypts the text of a Secret. So it is encrypted wherever the store puts it, or sends it. */
  asStored<Change extends DocumentChange>(change: Change): Change {
    const { path, text } = change;
    if (text === undefined || documentAddress(path)?.kind !== "secret") return change;
    return { ...change, text: this.#texts.encode(path, text) };
  }

  #stored(path: string, stored: string): StoredSecret {
    const read = () => {
      const decoded = this.#texts.decode(path, stored);
      return "text" in decoded ? { name: this.#texts.nameOf(decoded.text), text: decoded.text } : undefined;
    };
    return { isReadable: "text" in this.#texts.decode(path, stored), read };
  }
}
