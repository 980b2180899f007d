/**
 * How the document of a Profile that needs permits is written, so that the machines of an older davit wait:
 *
 * - An older davit does not know permits, and would install without one. So it reads a Profile that failed.
 *   `gated.failed` is the true value.
 * - An older davit that knows permits does not know `serve: DuringInstall`, and would serve the text to every address.
 *   So it reads a broken template. `sealed` is the true one.
 */

import { type BrokenTemplate, isSealed, type ProfileContent, type ResolvedTemplate } from "./profile.ts";

/** The part of a Profile's document that is written differently. */
interface Gateable {
  readonly content: ProfileContent;
  readonly failed?: true;
}

export interface Gated {
  readonly gated: { readonly failed: boolean };
}

interface SealedTemplate extends BrokenTemplate {
  readonly sealed: ResolvedTemplate;
}

/** Returns a document as it is written. */
export function gated<Document extends Gateable>(document: Document): Document & Partial<Gated> {
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

function mapped(
  templates: ProfileContent["templates"],
  change: (template: ResolvedTemplate) => ResolvedTemplate,
): ProfileContent["templates"] {
  const changed = Object.entries(templates).map(([part, template]) => [part, change(template)]);
  return Object.fromEntries(changed) as ProfileContent["templates"];
}
