/** Generic configs: any text at all, served as it is. */

import { jsonText, plainText, type Rendered } from "./rendered.ts";

/** Gives a text its type: JSON when the whole of it parses as JSON, plain text otherwise. An empty text is fine. */
export function renderGeneric(text: string): Rendered {
  return { body: text, contentType: isJson(text) ? jsonText : plainText };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    // That it is not JSON is all there is to know.
    return false;
  }
}
