/**
 * Parses one YAML document in a time that is linear in its length. The yaml package by itself is slower in two ways. It
 * collects every mistake of a text, each with a stack and a quote of its line: 130 KB of commas take ten seconds. It
 * compares each key of a map with all earlier keys: a map of 60,000 keys takes a minute.
 */

import { Composer, type Document, Parser } from "yaml";

/** A text is not YAML. `offset` is the place of its first mistake, in UTF-16 units. */
export class FirstMistake extends Error {
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
 * Parses a text with one document. A repeated key is no mistake here; see `repeatedKey`.
 * @throws {FirstMistake} with the place of the first mistake.
 * @throws {RangeError} if the nesting is too deep for the stack.
 */
export function composeDocument(text: string): Document.Parsed {
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
