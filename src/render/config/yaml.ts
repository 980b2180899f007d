/**
 * Reads YAML for configs: version 1.2, one document, only JSON's types. No error contains a message of the yaml
 * package, because such messages quote the text.
 */

import { Composer, type Document, isMap, isNode, isScalar, Parser, visit } from "yaml";
import { isAmbiguous, repeatedKey } from "../../lib/text/yaml-rules.ts";
import type { JsonValue } from "../../model/json.ts";
import { RenderError, type RenderReason } from "../core/render-error.ts";
import { positionAt, type TextPosition } from "../core/text-position.ts";
import { utf8Exceeds } from "../template/limits.ts";

/** Parsing takes one to two seconds for each MiB: too long for larger configs. */
const maxYamlBytes = 1024 * 1024;

/**
 * Parses a YAML text.
 * @param reason the reason of the error for a text that is not YAML.
 * @param uniqueKeys true if a repeated key is a mistake.
 * @throws {RenderError} with the place of the first mistake; yamlTooLarge for more than 1 MiB.
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
    // A RangeError: the nesting is too deep for the stack.
    throw new RenderError(reason);
  }
}

/**
 * Converts a YAML text to a JSON value.
 * @throws {RenderError} `reason` for a text that is not YAML, or has custom tags.
 * @throws {RenderError} ambiguousYaml for a plain value that YAML 1.1 and 1.2 read differently, such as the file mode
 * `0644`: author and reader would understand different values.
 */
export function yamlToJson(text: string, reason: RenderReason): JsonValue {
  return documentToJson(parseYaml(text, reason, true), text, reason);
}

/** Does the second half of `yamlToJson`. @param text the source of the document. */
export function documentToJson(document: Document.Parsed, text: string, reason: RenderReason): JsonValue {
  if (document.warnings.length > 0) throw new RenderError(reason);
  const ambiguous = findAmbiguous(document);
  if (ambiguous !== undefined) throw new RenderError("ambiguousYaml", positionAt(text, ambiguous));
  try {
    // The way through JSON text turns values that JSON lacks, such as .inf, into null.
    return JSON.parse(JSON.stringify(document.toJS({ maxAliasCount: 100 }) ?? null));
  } catch {
    // The text has unknown aliases, or too many of them. The package's message would quote them.
    throw new RenderError(reason);
  }
}

/**
 * Returns the place of the value at `path` in a text. With `name`, it returns the place of that member of the value.
 * @param path names and positions of lists, from the outermost value.
 * @returns undefined if the place is unknown: the text is too large or not YAML, or an alias is in the place of the
 * value.
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
    // A text that is not YAML: the caller reports no place.
    return undefined;
  }
}

/** Returns the offset of the first plain scalar that YAML 1.1 and 1.2 read differently. */
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

/** A text is not YAML. `offset` is the place of its first mistake, in UTF-16 units. */
class FirstMistake extends Error {
  override readonly name = "FirstMistake";
  readonly offset: number;

  constructor(offset: number) {
    super("not YAML");
    this.offset = offset;
  }
}

// At level "warn", the package would print keys as warnings of the process. At level "silent", it would drop errors.
const options = { logLevel: "error", resolveKnownTags: false, uniqueKeys: false, prettyErrors: false } as const;

/**
 * Parses a text with one document in a time that is linear in its length. The yaml package by itself is slower in two
 * ways. It collects every mistake of a text, each with a stack and a quote of its line: 130 KB of commas take ten
 * seconds. It compares each key of a map with all earlier keys: a map of 60,000 keys takes a minute. A repeated key is
 * no mistake here; see `repeatedKey`.
 * @throws {FirstMistake} with the place of the first mistake.
 * @throws {RangeError} if the nesting is too deep for the stack.
 */
function composeDocument(text: string): Document.Parsed {
  const composer = new StrictComposer();
  let only: Document.Parsed | undefined;
  for (const token of new Parser().parse(text)) {
    if (token.type === "error") throw new FirstMistake(token.offset);
    for (const document of composer.next(token)) only = theOnly(document, only);
  }
  for (const document of composer.end(true, text.length)) only = theOnly(document, only);
  const [mistake] = only?.errors ?? [];
  if (only === undefined || mistake !== undefined) throw new FirstMistake(mistake?.pos[0] ?? 0);
  return only;
}

function theOnly(document: Document.Parsed, before: Document.Parsed | undefined): Document.Parsed {
  if (before !== undefined) throw new FirstMistake(document.range[0]);
  return document;
}

/** The package's composer. It stops at the first mistake and stores at most one warning. */
class StrictComposer extends Composer {
  constructor() {
    super(options);
    const note: unknown = Reflect.get(this, "onError");
    let hasWarned = false;
    let first: FirstMistake | undefined;
    const stop = (source: unknown, code: unknown, message: unknown, isWarning?: boolean) => {
      if (isWarning !== true) {
        // The package catches an error of an inner node and reports one for each node around it. The first one has the
        // right place.
        first ??= new FirstMistake(offsetOf(source));
        throw first;
      }
      if (!hasWarned && typeof note === "function") note(source, code, message, isWarning);
      hasWarned = true;
    };
    // `onError` is private only in the package's types. If the package renames it, parsing is slower, but has the same
    // result.
    Reflect.set(this, "onError", stop);
  }
}

/** Returns the offset of a mistake. The package passes an offset, a range or a token. */
function offsetOf(source: unknown): number {
  if (typeof source === "number") return source;
  const [first] = Array.isArray(source) ? source : [Object(source).offset];
  return Number(first) || 0;
}
