/**
 * Reads YAML and JSON texts as documents, and finds the line of each field. The parser's messages quote the text. So
 * davit uses only the parser's error codes, and has its own sentence for each.
 */

import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseAllDocuments,
  Scalar,
  visit,
  type YAMLError,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import type { Position } from "../../lib/text/position.ts";
import { isAmbiguous, repeatedKey } from "../../lib/text/yaml-rules.ts";
import type { JsonValue } from "../../model/json.ts";
import type { FindingCode } from "../../model/objects/findings.ts";
import type { SchemaFinding } from "../admission/check.ts";
import { offsetInScalar } from "./scalar-place.ts";

/** In JSON all texts are quoted, so davit does not look for ambiguous unquoted scalars there. */
export type TextFormat = "yaml" | "json";

/** Returns the format by a file's name. */
export function formatOf(path: string): TextFormat {
  return /\.json$/i.test(path) ? "json" : "yaml";
}

/** One document of a text. */
export interface TextDocument {
  /** From 1; empty documents count, too. */
  readonly number: number;
  readonly value: JsonValue;
  /**
   * Returns the place of a field, or of its nearest parent that exists.
   * @param inside a place in the field's text. If davit finds this place in the file, it returns that instead of the
   *   field's place.
   */
  placeOf(path: readonly string[], inside?: Position): Position;
  /** Returns a finding for each place that programs may read differently, such as an unquoted `no`. */
  findings(): readonly SchemaFinding[];
}

/** The place where a part of a text begins. */
export interface TextStart {
  readonly line: number;
  /** The number of the first document. */
  readonly document: number;
}

export const textBegin: TextStart = { line: 1, document: 1 };

/** The reason why a text cannot be read at all. */
interface TextError extends Position {
  readonly number: number;
  readonly code: FindingCode;
  readonly text: string;
}

/**
 * Returns all documents of a text except empty ones. A text with one syntax error is refused as a whole, because davit
 * cannot know where the next document begins.
 */
export function readDocuments(
  text: string,
  format: TextFormat,
  start: TextStart = textBegin,
): readonly TextDocument[] | TextError {
  const lines = new Lines(start.line);
  const options = { ...parserOptions, lineCounter: lines, ...(format === "json" && jsonOptions) };
  const documents = [...parseAllDocuments(text, options)];
  const read: TextDocument[] = [];
  for (const [position, document] of documents.entries()) {
    const number = start.document + position;
    const error = firstError(document);
    if (error !== undefined) return toTextError(explained(error, text, document), number, lines);
    if (document.contents === null || isEmptyScalar(document.contents)) continue;
    const value = toJson(document);
    if (value === undefined) {
      const at = startOf(badAlias(document) ?? document.contents) ?? 0;
      return { number, ...lines.placeAt(at), code: "invalid-alias", text: aliasText };
    }
    read.push(new ParsedDocument({ text, number, value, document, lines, format }));
  }
  return read;
}

/** Finds lines in a part of a text, and counts them from the beginning of the whole text. */
class Lines extends LineCounter {
  readonly #before: number;

  /** @param first the number of the part's first line. */
  constructor(first: number) {
    super();
    this.#before = first - 1;
  }

  placeAt(offset: number): Position {
    const { line, col } = this.linePos(offset);
    return { line: line + this.#before, column: col };
  }
}

// `uniqueKeys` is off because `repeatedKey` does that check. `logLevel` keeps the parser from printing warnings to
// standard error, because they quote the text.
const parserOptions = { prettyErrors: false, logLevel: "error", merge: true, uniqueKeys: false } as const;
const jsonOptions = { schema: "json", merge: false } as const;
const cycleText = "is an alias (*name) of what it stands in, which would never end: write the value out";
const aliasText =
  "an alias (*name) has no anchor (&name) before it, names what it is in, or there are too many: write the value out";

interface ParsedParts {
  /** The whole text, with all documents. */
  readonly text: string;
  readonly number: number;
  readonly value: JsonValue;
  readonly document: Document.Parsed;
  readonly lines: Lines;
  readonly format: TextFormat;
}

class ParsedDocument implements TextDocument {
  readonly number: number;
  readonly value: JsonValue;
  readonly #parts: ParsedParts;
  /** Aliases that name one of their own ancestors. */
  readonly #cycles = new Set<unknown>();
  readonly #steps = new Steps();
  #findings: readonly SchemaFinding[] | undefined;

  constructor(parts: ParsedParts) {
    this.number = parts.number;
    this.value = parts.value;
    this.#parts = parts;
  }

  placeOf(path: readonly string[], inside?: Position): Position {
    const { document, lines } = this.#parts;
    let node: unknown = document.contents;
    let offset = startOf(node);
    for (const segment of path) {
      const step = this.#steps.into(isAlias(node) ? node.resolve(document) : node, segment);
      if (step === undefined) break;
      offset = startOf(step.place) ?? offset;
      node = step.node;
    }
    // For an alias that contains itself, the place is the alias and not its key: one line may have two aliases.
    if (this.#cycles.has(node)) offset = startOf(node);
    return lines.placeAt((inside && this.#offsetInside(node, inside)) ?? offset ?? 0);
  }

  #offsetInside(node: unknown, inside: Position): number | undefined {
    if (!isScalar(node) || typeof node.value !== "string" || !node.range) return undefined;
    const [from, to] = node.range;
    return offsetInScalar({ text: this.#parts.text, from, to, value: node.value }, inside);
  }

  findings(): readonly SchemaFinding[] {
    this.#findings ??= this.#find();
    return this.#findings;
  }

  #find(): readonly SchemaFinding[] {
    const findings: SchemaFinding[] = [];
    const anchors = new Anchors();
    const pathOf = (nodes: readonly unknown[]) => this.#steps.pathOf(nodes);
    visit(this.#parts.document, {
      Collection: (_, collection) => anchors.add(collection),
      Alias: (_, alias, ancestors) => {
        if (!isAmong(ancestors, anchors.named(alias))) return;
        this.#cycles.add(alias);
        findings.push({ path: pathOf([...ancestors, alias]), code: "invalid-alias", text: cycleText });
      },
      Scalar: (_, scalar, ancestors) => {
        anchors.add(scalar);
        const found = scalarFinding(scalar, this.#parts.format);
        if (found !== undefined) findings.push({ path: pathOf([...ancestors, scalar]), ...found });
      },
      Pair: (_, pair, ancestors) => {
        if (isScalar(pair.key)) return;
        const isTemplate = this.#parts.text[(startOf(pair.key) ?? 0) - 1] === "{" && isMap(pair.key);
        const what = isTemplate ? `has ${braceText}` : "has a key that is not text: write a name before the colon";
        findings.push({ path: pathOf(ancestors), code: "non-text-key", text: what });
      },
    });
    return findings;
  }
}

/** The anchored nodes that a walk has passed. An alias means the last anchor with its name before the alias. */
class Anchors {
  readonly #nodes = new Map<string, unknown>();

  add(node: Scalar | YAMLMap | YAMLSeq): void {
    if (node.anchor !== undefined) this.#nodes.set(node.anchor, node);
  }

  named({ source }: Alias): unknown {
    return this.#nodes.get(source);
  }
}

/** Returns the first alias that has no anchor before it, or names one of its own ancestors. */
function badAlias(document: Document.Parsed): Alias | undefined {
  const anchors = new Anchors();
  let found: Alias | undefined;
  visit(document, {
    Value: (_, value) => anchors.add(value),
    Alias: (_, alias, ancestors) => {
      const named = anchors.named(alias);
      if (named !== undefined && !isAmong(ancestors, named)) return undefined;
      found = alias;
      return visit.BREAK;
    },
  });
  return found;
}

function isAmong(nodes: readonly unknown[], node: unknown): boolean {
  return nodes.includes(node);
}

function scalarFinding(scalar: Scalar, format: TextFormat): Pick<SchemaFinding, "code" | "text"> | undefined {
  const { type, source, value } = scalar;
  if (type !== Scalar.PLAIN || source === undefined) return undefined;
  if (format === "yaml" && isAmbiguous(source)) {
    return { code: "unquoted-scalar", text: "reads differently in YAML 1.1 and 1.2: quote it" };
  }
  if (typeof value !== "number") return undefined;
  if (!Number.isFinite(value)) return { code: "inexact-number", text: "is no number that JSON has: quote it" };
  const losesDigits =
    Number.isInteger(value) && !Number.isSafeInteger(value) && /^(?:[-+]?[0-9]+|0x[0-9a-fA-F]+)$/.test(source);
  if (!losesDigits) return undefined;
  return { code: "inexact-number", text: "is a whole number beyond 2^53, which would lose digits: quote it" };
}

/**
 * Finds nodes by their paths, and the paths of nodes. It keeps indexes, because a file may have 100,000 mistakes whose
 * places must be found.
 */
class Steps {
  readonly #maps = new WeakMap<YAMLMap, ReadonlyMap<string, Pair>>();
  readonly #lists = new WeakMap<YAMLSeq, ReadonlyMap<unknown, number>>();

  /** Returns a child of a node by its key, its position, or the `name` of a list's entry. */
  into(node: unknown, segment: string): { readonly place: unknown; readonly node: unknown } | undefined {
    if (isMap(node)) {
      const pair = this.#pairsOf(node).get(segment);
      return pair === undefined ? undefined : { place: pair.key, node: pair.value };
    }
    if (!isSeq(node)) return undefined;
    const item = node.items[Number(segment)] ?? node.items.find((entry) => isNamed(entry, segment));
    return item === undefined ? undefined : { place: item, node: item };
  }

  /** Returns the path of the last node. A key has the path of its value. @param nodes each contains the next. */
  pathOf(nodes: readonly unknown[]): readonly string[] {
    const path: string[] = [];
    for (const [depth, node] of nodes.entries()) {
      const next = nodes[depth + 1];
      if (isSeq(node) && next !== undefined) path.push(String(this.#positionsIn(node).get(next)));
      if (isPair(node)) path.push(keyText(node.key));
    }
    return path;
  }

  /** Returns the pairs of a map by key; the first one, if a key is repeated. */
  #pairsOf(map: YAMLMap): ReadonlyMap<string, Pair> {
    const known = this.#maps.get(map);
    if (known !== undefined) return known;
    const pairs = new Map(map.items.toReversed().map((pair) => [keyText(pair.key), pair]));
    this.#maps.set(map, pairs);
    return pairs;
  }

  #positionsIn(list: YAMLSeq): ReadonlyMap<unknown, number> {
    const known = this.#lists.get(list);
    if (known !== undefined) return known;
    const positions = new Map(list.items.map((item, at) => [item, at]));
    this.#lists.set(list, positions);
    return positions;
  }
}

function keyText(key: unknown): string {
  return isScalar(key) ? String(key.value) : "";
}

/** True for an entry with this `name`: a path may name a list's entry instead of its position. */
function isNamed(entry: unknown, name: string): boolean {
  return isMap(entry) && entry.get("name") === name;
}

/** Returns the offset of a node; undefined for a node without text. */
function startOf(node: unknown): number | undefined {
  if (typeof node !== "object" || node === null || !("range" in node)) return undefined;
  const { range } = node;
  return Array.isArray(range) ? range[0] : undefined;
}

function isEmptyScalar(contents: unknown): boolean {
  return isScalar(contents) && contents.value === null;
}

/** Returns the document as JSON; undefined if an alias has no anchor, or the aliases exceed the parser's limit. */
function toJson(document: Document.Parsed): JsonValue | undefined {
  try {
    const value: JsonValue = document.toJS();
    return value;
  } catch {
    // The parser's message quotes the alias. davit's own message has the line instead.
    return undefined;
  }
}

function firstError(document: Document.Parsed): ParserError | undefined {
  const [error] = [...document.errors, ...document.warnings];
  const repeated = error === undefined ? repeatedKey(document) : undefined;
  return repeated === undefined ? error : { code: "DUPLICATE_KEY", pos: [repeated] };
}

interface ParserError extends Pick<YAMLError, "code"> {
  readonly pos: readonly [from: number, to?: number];
  /** What is wrong, if davit knows more than the parser. */
  readonly text?: string;
}

const braceText = 'a value with "{{" lacks its quotes: put the whole value in quotes';

/** Finds the likely cause of an error: a template's braces, which begin an object in YAML, or a line of dashes. */
function explained(error: ParserError, text: string, document: Document.Parsed): ParserError {
  let braces: number | undefined;
  visit(document, {
    Map: (_, map) => {
      const at = startOf(map);
      if (at === undefined || !text.startsWith("{{", at)) return undefined;
      braces = at;
      return visit.BREAK;
    },
  });
  if (braces !== undefined && braces <= error.pos[0]) return { ...error, pos: [braces], text: braceText };
  const isOfObject = /^(?:apiVersion|kind|metadata|spec)$/.test(/^\w*/.exec(text.slice(error.pos[0]))?.[0] ?? "");
  const isAtMargin = isOfObject && (error.pos[0] === 0 || text[error.pos[0] - 1] === "\n");
  if (error.code !== "DUPLICATE_KEY" || !isAtMargin) return error;
  return { ...error, text: "a key occurs twice: remove one, or, if another object begins here, --- is missing above" };
}

function toTextError(error: ParserError, number: number, lines: Lines): TextError {
  const code = error.code === "RESOURCE_EXHAUSTION" ? "too-deep" : "invalid-yaml";
  return {
    number,
    ...lines.placeAt(error.pos[0]),
    code,
    text: error.text ?? errorTexts[error.code] ?? "this is no YAML: correct it",
  };
}

const errorTexts: Readonly<Partial<Record<YAMLError["code"], string>>> = {
  ALIAS_PROPS: "an alias has an anchor or a tag of its own: remove it",
  BAD_ALIAS: "an alias is not well formed: correct it",
  BAD_COLLECTION_TYPE: "a tag does not fit the value behind it: remove the tag",
  BAD_DIRECTIVE: "a line that begins with % is no directive: remove it",
  BAD_DQ_ESCAPE: "double quotes hold a backslash that escapes nothing: write \\\\ or use single quotes",
  BAD_INDENT: "the indentation does not fit the lines above, or a bracket before it is not closed: correct it",
  BAD_PROP_ORDER: "an anchor or a tag stands in the wrong place: put it before the value",
  BAD_SCALAR_START: "a value begins with a character that has a meaning in YAML: put it in quotes",
  BLOCK_AS_IMPLICIT_KEY: 'a value holds ": " or begins on the line of another key: put it in quotes',
  BLOCK_IN_FLOW: "a comma is missing inside brackets or braces, or an indented block stands in them: correct it",
  DUPLICATE_KEY: "a key occurs twice in one object: remove one of them",
  KEY_OVER_1024_CHARS: "a key is longer than 1024 characters: is a colon or a quote missing?",
  MISSING_CHAR: "a quote, bracket, brace, comma or colon is missing: add it",
  MULTILINE_IMPLICIT_KEY: "a key goes over more than one line: is a colon missing, or a comma inside braces?",
  MULTIPLE_ANCHORS: "a value has two anchors: remove one",
  MULTIPLE_TAGS: "a value has two tags: remove one",
  RESOURCE_EXHAUSTION: "values are nested too deeply: write them flatter",
  TAB_AS_INDENT: "a line is indented with a tab: use blanks",
  TAG_RESOLVE_FAILED: "a value has an unknown tag, or text without quotes in JSON: remove the tag or add the quotes",
  UNEXPECTED_TOKEN: "something stands where it cannot: correct it",
};
