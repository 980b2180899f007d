/**
 * YAML and JSON texts as documents whose places are known by line. The parser's own messages quote the text that they
 * fail on, so that only its error codes are used, each with a sentence of ours.
 */

import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  Scalar,
  visit,
  type YAMLError,
} from "yaml";
import type { Finding } from "../admission/check.ts";
import type { JsonValue } from "../model/json.ts";
import { isAmbiguous } from "./ambiguous.ts";

/** JSON is read by its own rules: there, text is always quoted. */
export type TextFormat = "yaml" | "json";

/** One document of a text. */
export interface TextDocument {
  /** Counts from 1, as the `---` lines do. */
  readonly number: number;
  readonly value: JsonValue;
  /** Line of a place, or of the nearest place above it that exists; counts from 1. */
  lineOf(path: readonly string[]): number;
  /** Places whose meaning is not the same for everybody who reads the text. */
  findings(): readonly Finding[];
}

/** A text that cannot be read at all. */
export interface TextError {
  readonly number: number;
  readonly line: number;
  readonly column: number;
  readonly text: string;
}

/**
 * Reads all documents of a text; empty ones are left out. One syntax error refuses the whole text, because behind it
 * nobody knows where a document begins.
 */
export function readDocuments(text: string, format: TextFormat): readonly TextDocument[] | TextError {
  const lines = new LineCounter();
  const options = { ...parserOptions, lineCounter: lines, ...(format === "json" && jsonOptions) };
  const documents = [...parseAllDocuments(text, options)];
  const read: TextDocument[] = [];
  for (const [position, document] of documents.entries()) {
    const number = position + 1;
    const [error] = [...document.errors, ...document.warnings];
    if (error !== undefined) return toTextError(error, number, lines);
    if (document.contents === null || isEmptyScalar(document.contents)) continue;
    const value = toJson(document);
    if (value === undefined) {
      return { number, line: lineAt(lines, document.contents), column: 1, text: aliasText };
    }
    read.push(new ParsedDocument({ number, value, document, lines, format }));
  }
  return read;
}

// `error` keeps the parser from printing warnings, which quote the text, to the process's standard error.
const parserOptions = { prettyErrors: false, logLevel: "error", merge: true } as const;
const jsonOptions = { schema: "json", merge: false } as const;
const aliasText = "an alias (*name) has no anchor (&name) before it, or there are too many: write the value out";

interface ParsedParts {
  readonly number: number;
  readonly value: JsonValue;
  readonly document: Document.Parsed;
  readonly lines: LineCounter;
  readonly format: TextFormat;
}

class ParsedDocument implements TextDocument {
  readonly number: number;
  readonly value: JsonValue;
  readonly #parts: ParsedParts;

  constructor(parts: ParsedParts) {
    this.number = parts.number;
    this.value = parts.value;
    this.#parts = parts;
  }

  lineOf(path: readonly string[]): number {
    const { document, lines } = this.#parts;
    let node: unknown = document.contents;
    let line = lineAt(lines, node);
    for (const segment of path) {
      const step = stepInto(isAlias(node) ? node.resolve(document) : node, segment);
      if (step === undefined) break;
      line = lineAt(lines, step.place) || line;
      node = step.node;
    }
    return line;
  }

  findings(): readonly Finding[] {
    const findings: Finding[] = [];
    visit(this.#parts.document, {
      Scalar: (_, scalar, ancestors) => {
        const text = scalarText(scalar, this.#parts.format);
        if (text !== undefined) findings.push({ path: pathOf([...ancestors, scalar]), text });
      },
      Pair: (_, pair, ancestors) => {
        if (isScalar(pair.key)) return;
        findings.push({ path: pathOf(ancestors), text: "has a key that is not text: write a name before the colon" });
      },
    });
    return findings;
  }
}

function scalarText(scalar: Scalar, format: TextFormat): string | undefined {
  const { type, source, value } = scalar;
  if (type !== Scalar.PLAIN || source === undefined) return undefined;
  if (format === "yaml" && isAmbiguous(source)) return "reads differently in YAML 1.1 and 1.2: quote it";
  if (typeof value !== "number") return undefined;
  if (!Number.isFinite(value)) return "is no number that JSON has: quote it";
  const losesDigits =
    Number.isInteger(value) && !Number.isSafeInteger(value) && /^(?:[-+]?[0-9]+|0x[0-9a-fA-F]+)$/.test(source);
  return losesDigits ? "is a whole number beyond 2^53, which would lose digits: quote it" : undefined;
}

/** The path of the last of nested nodes; a key counts as the place that it names. */
function pathOf(nodes: readonly unknown[]): readonly string[] {
  const path: string[] = [];
  for (const [depth, node] of nodes.entries()) {
    const next = nodes[depth + 1];
    if (isSeq(node) && next !== undefined) path.push(String(node.items.indexOf(next)));
    if (isPair(node)) path.push(keyText(node.key));
  }
  return path;
}

function keyText(key: unknown): string {
  return isScalar(key) ? String(key.value) : "";
}

function stepInto(node: unknown, segment: string): { readonly place: unknown; readonly node: unknown } | undefined {
  if (isMap(node)) {
    const pair = node.items.find(({ key }) => keyText(key) === segment);
    return pair === undefined ? undefined : { place: pair.key, node: pair.value };
  }
  if (!isSeq(node)) return undefined;
  const item = node.items[Number(segment)];
  return item === undefined ? undefined : { place: item, node: item };
}

function lineAt(lines: LineCounter, node: unknown): number {
  if (typeof node !== "object" || node === null || !("range" in node)) return 0;
  const { range } = node;
  return Array.isArray(range) ? lines.linePos(range[0]).line : 0;
}

function isEmptyScalar(contents: unknown): boolean {
  return isScalar(contents) && contents.value === null;
}

/** The document as JSON; undefined when an alias leads nowhere or a chain of them grows without bound. */
function toJson(document: Document.Parsed): JsonValue | undefined {
  try {
    const value: JsonValue = document.toJS();
    return value;
  } catch {
    // The parser's message names the alias; ours names the line.
    return undefined;
  }
}

function toTextError(error: YAMLError, number: number, lines: LineCounter): TextError {
  const { line, col } = lines.linePos(error.pos[0]);
  return { number, line, column: col, text: errorTexts[error.code] ?? "this is no YAML: correct it" };
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
  BLOCK_IN_FLOW: "an indented block stands inside brackets or braces: write it in one of the two styles",
  DUPLICATE_KEY: "a key occurs twice in one object: remove one of them",
  KEY_OVER_1024_CHARS: "a key is longer than 1024 characters: is a colon or a quote missing?",
  MISSING_CHAR: "a quote, bracket, brace, comma or colon is missing: add it",
  MULTILINE_IMPLICIT_KEY: "a key goes over more than one line: is a colon missing?",
  MULTIPLE_ANCHORS: "a value has two anchors: remove one",
  MULTIPLE_TAGS: "a value has two tags: remove one",
  RESOURCE_EXHAUSTION: "values are nested too deeply: write them flatter",
  TAB_AS_INDENT: "a line is indented with a tab: use blanks",
  TAG_RESOLVE_FAILED: "a value has an unknown tag, or text without quotes in JSON: remove the tag or add the quotes",
  UNEXPECTED_TOKEN: "something stands where it cannot: correct it",
};
