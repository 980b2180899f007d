/** Removes what is made from texts of Secrets out of documents that people may read. */

import { createHash } from "node:crypto";
import type { JsonObject } from "../../model/json.ts";
import { decodeProfile, documentAddress, encodeDocument, secretPath } from "../../model/objects/documents.ts";
import { isOfSecret, partsOf } from "../../model/objects/profile.ts";
import type { SecretReader } from "../../model/objects/secret-texts.ts";

/** In place of a digest that the reader does not have. No text is known that has it. */
const otherDigest = "0".repeat(64);
/** In place of another name of a text, such as an encrypted one's: the reader sees that nothing is compared. */
const noDigest = "not shown";

export interface ComparedDigests {
  readonly digests: JsonObject;
  readonly digestAt: (path: string) => string | undefined;
}

/**
 * Returns a document for a reader. A template from a Secret keeps the digest of its text only if the reader has the
 * same digest. The revision of such a Profile is a digest of the text, too, so it is left out.
 * @param known.digests the reader's digests, by `namespace/profile/part`.
 * @param known.digestAt returns the SHA-256 of the text at a path in the store; undefined if davit cannot decrypt it.
 * @returns an empty text for a Profile that this davit cannot decode: it may have anything.
 */
export function withoutSecrets(path: string, text: string, { digests, digestAt }: ComparedDigests): string {
  const address = documentAddress(path);
  if (address?.kind !== "profile") return text;
  const document = decodeProfile(text);
  if (document === undefined) return "";
  const { content } = document;
  const templates = { ...content.templates };
  let hasSecrets = false;
  for (const part of partsOf(templates)) {
    const template = templates[part];
    if (!isOfSecret(template)) continue;
    hasSecrets = true;
    const name = `${address.namespace}/${address.name}/${part}`;
    const own = digestAt(secretPath(address.namespace, address.name, template.sha256));
    const isKnown = own !== undefined && Object.hasOwn(digests, name) && digests[name] === own;
    const other = own === undefined ? noDigest : otherDigest;
    templates[part] = { ...template, sha256: isKnown ? own : other };
  }
  return hasSecrets ? encodeDocument({ ...document, revision: "", content: { ...content, templates } }) : text;
}

/** Returns the SHA-256 of a Secret's text; undefined if it is not there, or cannot be decrypted. */
export function digestOf(path: string, stored: string | undefined, reader: SecretReader): string | undefined {
  const read = stored === undefined ? undefined : reader.decode(path, stored);
  return read !== undefined && "text" in read ? createHash("sha256").update(read.text).digest("hex") : undefined;
}
