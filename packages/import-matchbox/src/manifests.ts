/**
 * Writes objects as YAML that people can review. Equal objects give equal bytes. Parsers of YAML 1.1 and of YAML 1.2
 * read the same objects.
 */

import { Document, isScalar, type Scalar, visit } from "yaml";
import { isAmbiguous } from "../../../src/lib/text/yaml-rules.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { numberText } from "../../../src/render/core/values.ts";

export interface Manifest {
  /** Lines above the objects, without the `#`. */
  readonly comments: readonly string[];
  readonly objects: readonly JsonObject[];
}

/** Returns the text of a manifest's file. */
export function manifestText({ comments, objects }: Manifest): string {
  return comments.map((comment) => `# ${comment}\n`).join("") + objects.map(objectText).join("---\n");
}

// Numbers are written without an exponent, because YAML 1.1 and 1.2 read exponents differently.
const decimalNumber = {
  tag: "tag:yaml.org,2002:float",
  default: true,
  identify: (value: unknown) => typeof value === "number",
  test: /^(?!)/,
  resolve: (text: string) => text,
  stringify: ({ value }: Scalar) => numberText(Number(value)),
} as const;

function objectText(object: JsonObject): string {
  const document = new Document(object, {
    compat: "yaml-1.1",
    aliasDuplicateObjects: false,
    customTags: (tags) => [decimalNumber, ...tags],
  });
  visit(document, {
    Scalar(_key, node) {
      if (!isScalar(node) || typeof node.value !== "string") return;
      if (hasOddCharacter(node.value) || isAmbiguous(node.value)) node.type = "QUOTE_DOUBLE";
    },
  });
  return document.toString({ lineWidth: 0 });
}

/** True for a text with a character that YAML would lose outside double quotes, or that a person would not see. */
function hasOddCharacter(text: string): boolean {
  return /[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]/u.test(text);
}
