/** YAML for configs: version 1.2, one document, only JSON's types. It never shows the package's messages. */

import { type Document, isMap, isNode, isScalar, visit } from "yaml";
import { isAmbiguous, repeatedKey } from "../../lib/yaml-rules.ts";
import type { JsonValue } from "../../model/json.ts";
import { RenderError, type RenderReason } from "../core/render-error.ts";
import { positionAt, type TextPosition } from "../core/text-position.ts";
import { utf8Exceeds } from "../template/limits.ts";
import { composeDocument, FirstMistake } from "./yaml-composer.ts";

/** Parsing takes one to two seconds for each MiB: too long for larger configs. */
const maxYamlBytes = 1024 * 1024;

/**
 * Parses a YAML text.
 * @param reason to throw for a text that is not YAML.
 * @param uniqueKeys true makes a repeated key a mistake.
 * @throws {RenderError} with the place of the first mistake.
 */
export function parseYaml(text: string, reason: RenderReason, uniqueKeys: boolean): Document.Parsed {
  if (utf8Exceeds(text, maxYamlBytes)) throw new RenderError("yamlTooLarge");
  try {
    const document = composeDocument(text);
    const again = uniqueKeys ? repeatedKey(document) : undefined;
    if (again !== undefined) throw new FirstMistake(again);
    return document;
  } catch (error) {
    if (error instanceof FirstMistake) throw new RenderError(reason, positionAt(text, error.offset));
    if (error instanceof RenderError) throw error;
    // The nesting is too deep for the stack.
    throw new RenderError(reason);
  }
}

/**
 * Converts a YAML text to a JSON value.
 * @throws {RenderError} `reason` for anything but YAML without custom tags; ambiguousYaml for a plain value that YAML
 * 1.1 and 1.2 read differently, such as the file mode `0644`: author and reader would understand different values.
 */
export function yamlToJson(text: string, reason: RenderReason): JsonValue {
  const document = parseYaml(text, reason, true);
  if (document.warnings.length > 0) throw new RenderError(reason);
  const ambiguous = findAmbiguous(document);
  if (ambiguous !== undefined) throw new RenderError("ambiguousYaml", positionAt(text, ambiguous));
  try {
    // Through JSON text: values that JSON lacks, such as .inf, become null as everywhere else.
    return JSON.parse(JSON.stringify(document.toJS({ maxAliasCount: 100 }) ?? null));
  } catch {
    // The text has unknown or multiplying aliases. The package's message would quote them.
    throw new RenderError(reason);
  }
}

/**
 * The place of a value in a text, or of the member called `name`.
 * @param path names and positions of lists, from the outermost value.
 * @returns undefined if the place is unknown: the text is too large, or the value came by an alias.
 */
export function findInYaml(text: string, path: readonly string[], name?: string): TextPosition | undefined {
  if (utf8Exceeds(text, maxYamlBytes)) return undefined;
  const node = quietly(text)?.getIn(path, true);
  const named =
    name === undefined || !isMap(node) ? node : node.items.find(({ key }) => isScalar(key) && key.value === name)?.key;
  const offset = isNode(named) ? named.range?.[0] : undefined;
  return offset === undefined ? undefined : positionAt(text, offset);
}

function quietly(text: string): Document.Parsed | undefined {
  try {
    return composeDocument(text);
  } catch {
    // Without a place to report.
    return undefined;
  }
}

/** Offset of the first plain scalar that the YAML versions read differently. */
function findAmbiguous(document: Document.Parsed): number | undefined {
  let found: number | undefined;
  visit(document, {
    Scalar(_key, node) {
      if (node.type !== "PLAIN" || !isAmbiguous(node.source ?? "")) return undefined;
      found = node.range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  return found;
}
