/** Generic configs: any text, served unchanged, or JSON if the Profile requires it. */

import type { GenericFormat } from "../../model/profile.ts";
import { RenderError } from "../core/render-error.ts";
import { jsonText, plainText, type Rendered } from "../core/rendered.ts";
import { findJsonFault } from "./json-fault.ts";

/**
 * Gives a text its type: JSON when the whole of it parses as JSON, plain text otherwise. An empty text is fine.
 * @param format what the Profile promises; undefined for any text.
 * @throws {RenderError} for a text that is not of the promised format.
 */
export function renderGeneric(text: string, format: GenericFormat | undefined): Rendered {
  const isWhole = isJson(text);
  if (format === "json" && !isWhole) throw new RenderError("notGenericJson", findJsonFault(text));
  return { body: text, contentType: isWhole ? jsonText : plainText };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    // Nothing more is needed: it is not JSON.
    return false;
  }
}
