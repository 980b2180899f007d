/**
 * How the documents of some Profiles are written, so that the machines of an older davit wait:
 *
 * - An older davit does not know permits, and would install without one. So it reads a Profile that failed.
 *   `gated.failed` is the true value.
 * - An older davit that knows permits does not know `serve: DuringInstall`, and would serve the text to every address.
 *   So it reads a broken template. `sealed` is the true one.
 * - An older davit does not know encrypted texts of Secrets, and would serve the ciphertext. So it reads a Profile that
 *   failed. `encrypted` is the true document.
 */

import {
  type BrokenTemplate,
  isOfSecret,
  isSealed,
  type ProfileContent,
  type ResolvedTemplate,
  templateParts,
} from "./profile.ts";
import { keyOfSecret } from "./secret-texts.ts";

/** The part of a Profile's document that is written differently. */
interface Gateable {
  readonly content: ProfileContent;
  readonly failed?: true;
}

interface Gated {
  readonly gated: { readonly failed: boolean };
}

/** A Profile's document as it is written. */
export type Written<Document extends Gateable> = Document & {
  readonly gated?: Gated["gated"] | undefined;
  readonly encrypted?: Document & Partial<Gated>;
};

interface SealedTemplate extends BrokenTemplate {
  readonly sealed: ResolvedTemplate;
}

/** Returns a document as it is written. */
export function asWritten<Document extends Gateable>(document: Document): Written<Document> {
  const { displayName, templates } = document.content;
  const isEncrypted = (template: ResolvedTemplate) =>
    isOfSecret(template) && keyOfSecret(template.sha256) !== undefined;
  const written = gated(document);
  if (!Object.values(templates).some(isEncrypted)) return written;
  return { ...written, content: failedContent(displayName), failed: true, gated: undefined, encrypted: written };
}

/** Returns a document whose install needs a permit as it is written. */
function gated<Document extends Gateable>(document: Document): Document & Partial<Gated> {
  const { content, failed } = document;
  if (content.install === undefined) return document;
  const templates = mapped(content.templates, (template) =>
    isSealed(template) ? ({ kind: "broken", sealed: template } satisfies SealedTemplate) : template,
  );
  return { ...document, content: { ...content, templates }, failed: true, gated: { failed: failed === true } };
}

/** Returns the document that `gated` got. */
export function ungated<Document extends Gateable>(document: Document & Gated): Document {
  const { gated: mark, failed: _, ...rest } = document;
  const templates = mapped(document.content.templates, (template) =>
    template.kind === "broken" && "sealed" in template ? (template as SealedTemplate).sealed : template,
  );
  const content = { ...document.content, templates };
  return { ...rest, content, ...(mark.failed && { failed: true }) } as unknown as Document;
}

/** Content that makes machines wait. All parts are broken, because older boot services do not know `failed`. */
export function failedContent(displayName: string): ProfileContent {
  const broken = { kind: "broken" } as const;
  const templates = Object.fromEntries(templateParts.map((part) => [part, broken]));
  return { displayName, boot: broken, templates };
}

function mapped(
  templates: ProfileContent["templates"],
  change: (template: ResolvedTemplate) => ResolvedTemplate,
): ProfileContent["templates"] {
  const changed = Object.entries(templates).map(([part, template]) => [part, change(template)]);
  return Object.fromEntries(changed) as ProfileContent["templates"];
}
