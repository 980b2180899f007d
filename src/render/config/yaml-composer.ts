/**
 * Parses one YAML document in time linear in its length. The package itself collects every mistake of a text, each with
 * a stack and a quote of its line, and compares each key of a map with all before it: 130 KB of commas then take ten
 * seconds, and a map of 60,000 keys a minute.
 */

import { Composer, type Document, Parser } from "yaml";

/** The offset of a text's first YAML mistake, in UTF-16 units. */
export class FirstMistake extends Error {
  override readonly name = "FirstMistake";
  readonly offset: number;

  constructor(offset: number) {
    super("not YAML");
    this.offset = offset;
  }
}

// At level "warn" the package prints keys to the process's warnings; "silent" would drop errors.
const options = { logLevel: "error", resolveKnownTags: false, uniqueKeys: false, prettyErrors: false } as const;

/**
 * Parses a text with one document. A repeated key is no mistake here, see `repeatedKey`.
 * @throws {FirstMistake} @throws {RangeError} if the nesting is too deep for the stack.
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
        // The package catches errors from below, and reports one for each node around it.
        first ??= new FirstMistake(offsetOf(source));
        throw first;
      }
      if (!hasWarned && typeof note === "function") note(source, code, message, isWarning);
      hasWarned = true;
    };
    // Only the package's types make this member private. Without this line parsing is slower, but otherwise the same.
    Reflect.set(this, "onError", stop);
  }
}

/** A mistake has an offset, a range, or a token. */
function offsetOf(source: unknown): number {
  if (typeof source === "number") return source;
  const [first] = Array.isArray(source) ? source : [Object(source).offset];
  return Number(first) || 0;
}
