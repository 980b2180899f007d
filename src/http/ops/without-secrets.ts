/** Removes what is made from texts of Secrets out of documents that people may read. */

import { decodeProfile, documentAddress, encodeDocument } from "../../model/documents.ts";
import type { JsonObject } from "../../model/json.ts";
import { isDigest, isOfSecret, partsOf } from "../../model/profile.ts";

/** In place of a digest that the reader does not have. No text is known that has it. */
const otherDigest = "0".repeat(64);
/** In place of another name of a text, such as an encrypted one's: the reader sees that nothing is compared. */
const noDigest = "not shown";

/**
 * Returns a document for a reader. A template from a Secret keeps the digest of its text only if the reader has the
 * same digest. The revision of such a Profile is a digest of the text, too, so it is left out.
 * @param digests the reader's digests, by `namespace/profile/part`.
 * @returns an empty text for a Profile that this davit cannot decode: it may have anything.
 */
export function withoutSecrets(path: string, text: string, digests: JsonObject): string {
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
    const isKnown = Object.hasOwn(digests, name) && digests[name] === template.sha256;
    const other = isDigest(template.sha256) ? otherDigest : noDigest;
    templates[part] = { ...template, sha256: isKnown ? template.sha256 : other };
  }
  return hasSecrets ? encodeDocument({ ...document, revision: "", content: { ...content, templates } }) : text;
}
