/**
 * Puts texts in the place of the names that `local` and `contents_local` of a Butane template have. Butane reads these
 * texts from files, and renders none of them as a template.
 */

import { type Document, isScalar, type Pair, visit } from "yaml";
import { isButane } from "../butane/translate.ts";
import { renderErrorOf } from "../core/render-error.ts";
import { parseYaml } from "./yaml.ts";

/** The field for the text itself, by the field for its name. */
const fieldsOfTexts: ReadonlyMap<unknown, string> = new Map([
  ["local", "inline"],
  ["contents_local", "contents"],
]);

/**
 * Returns a template with the texts that it names. Every line keeps its number. A template that is no Butane, or no
 * YAML without its tags, and a name without a text remain as they are: `renderIgnition` refuses a name with its place.
 * @param textOf returns the text of a name; undefined if there is none.
 */
export function withLocalTexts(template: string, textOf: (name: string) => string | undefined): string {
  if (!/\blocal["']?\s*:|_local["']?\s*:/.test(template)) return template;
  const document = documentOf(withoutTags(template));
  if (document === undefined || !isButane(document)) return template;
  const parts: string[] = [];
  let end = 0;
  visit(document, {
    Pair(_key, pair) {
      const found = replacement(pair, textOf);
      if (found === undefined) return;
      parts.push(template.slice(end, found.from), found.text);
      end = found.to;
    },
  });
  return parts.join("") + template.slice(end);
}

/** Writes blanks in the place of blocks and comments, and letters in the place of values. Each offset stays. */
function withoutTags(template: string): string {
  // Behind the last end of a tag there is no tag: looking for the end of each `{{` there would take quadratic time.
  const end = template.lastIndexOf("}}") + 2;
  const tagged = template.slice(0, end).replace(/\{\{(?:[^}]|\}(?!\}))*\}\}\}?/g, (tag) => {
    return tag.replace(/[^\n]/g, /^\{\{~?(?:[#/!^]|else\b)/.test(tag) ? " " : "x");
  });
  return tagged + template.slice(end);
}

function documentOf(text: string): Document.Parsed | undefined {
  let document: Document.Parsed | undefined;
  renderErrorOf(() => {
    document = parseYaml(text, "notJson", false);
  });
  return document;
}

interface Replacement {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

function replacement({ key, value }: Pair, textOf: (name: string) => string | undefined): Replacement | undefined {
  if (!isScalar(key) || !isScalar(value) || !key.range || !value.range) return undefined;
  const field = fieldsOfTexts.get(key.value);
  const text = field === undefined ? undefined : textOf(value.source ?? "");
  if (text === undefined) return undefined;
  // In JSON, the text is in one line. Without braces, no part of it is a tag.
  const quoted = JSON.stringify(text).replaceAll("{", "\\u007b");
  return { from: key.range[0], to: value.range[1], text: `${field}: ${quoted}` };
}
