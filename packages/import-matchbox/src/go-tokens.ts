/**
 * Cuts a Go template (https://pkg.go.dev/text/template) into text, comments and actions, and cuts actions into tokens.
 * The text does not have the white space that `{{-` and `-}}` remove.
 */

import { advance, type TextPosition, textStart } from "../../../src/render/core/text-position.ts";

export type GoToken =
  /** `.name`. `isChained` is true if no space is before it: then it names a member of the token before. */
  | { readonly kind: "field"; readonly name: string; readonly isChained: boolean }
  | { readonly kind: "dot" }
  /** `$name`. The name is empty for `$` alone. */
  | { readonly kind: "variable"; readonly name: string }
  | { readonly kind: "text"; readonly value: string }
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "word"; readonly name: string }
  | { readonly kind: "mark"; readonly mark: string }
  /** A token that davit has no equivalent for, such as `0x1f`. */
  | { readonly kind: "strange" };

export type GoPiece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "comment"; readonly text: string; readonly at: TextPosition }
  | { readonly kind: "action"; readonly tokens: readonly GoToken[]; readonly at: TextPosition };

/** Thrown for a text that Go would refuse as a template. */
export class GoSyntaxError extends Error {
  override readonly name = "GoSyntaxError";
  readonly at: TextPosition;

  constructor(message: string, at: TextPosition) {
    super(message);
    this.at = at;
  }
}

const comment = /\/\*([\s\S]*?)\*\/(?:[ \t\r\n]+-)?\}\}/y;
const spaceAtStart = /^[ \t\r\n]+/;

/**
 * Cuts a template into pieces.
 * @throws {GoSyntaxError} if Go would refuse the template.
 */
export function cutGoTemplate(source: string): readonly GoPiece[] {
  const pieces: GoPiece[] = [];
  let from = 0;
  let trimsStart = false;
  let at = textStart;
  let last = 0;
  for (let open = source.indexOf("{{"); open >= 0; open = source.indexOf("{{", from)) {
    const trimsEnd = /^-[ \t\r\n]/.test(source.slice(open + 2, open + 4));
    pieces.push({ kind: "text", text: trimmed(source.slice(from, open), trimsStart, trimsEnd) });
    at = advance(at, source.slice(last, open));
    last = open;
    const { piece, end, trimsNext } = readTag(source, open + 2 + (trimsEnd ? 2 : 0), at);
    pieces.push(piece);
    from = end;
    trimsStart = trimsNext;
  }
  pieces.push({ kind: "text", text: trimmed(source.slice(from), trimsStart, false) });
  return pieces.filter((piece) => piece.kind !== "text" || piece.text !== "");
}

function trimmed(text: string, atStart: boolean, atEnd: boolean): string {
  const begun = atStart ? text.replace(spaceAtStart, "") : text;
  return atEnd ? withoutSpaceAtEnd(begun) : begun;
}

/**
 * Removes white space at the end of a text. It uses no regular expression, which would search for the end again at
 * every blank: 100,000 blanks would take a minute.
 */
function withoutSpaceAtEnd(text: string): string {
  let end = text.length;
  while (end > 0 && " \t\r\n".includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

interface Tag {
  readonly piece: GoPiece;
  readonly end: number;
  readonly trimsNext: boolean;
}

/** Reads a tag. @param from the offset after its opening braces. @param at the place of these braces. */
function readTag(source: string, from: number, at: TextPosition): Tag {
  comment.lastIndex = from;
  const found = comment.exec(source);
  if (found !== null) {
    const [whole, text = ""] = found;
    return { piece: { kind: "comment", text, at }, end: comment.lastIndex, trimsNext: whole.endsWith("-}}") };
  }
  const tokens = new ActionTokens(source, from, at);
  return { piece: { kind: "action", tokens: tokens.read(), at }, end: tokens.offset, trimsNext: tokens.trimsNext };
}

const space = /[ \t\r\n]*/y;
const close = /\}\}/y;
const trimmingClose = /-\}\}/y;
const tokenForms = {
  field: /\.[\p{L}_][\p{L}\p{Nd}_]*/uy,
  variable: /\$[\p{L}\p{Nd}_]*/uy,
  quoted: /"(?:[^"\\\n]|\\[^\n])*"/y,
  raw: /`[^`]*`/y,
  character: /'(?:[^'\\\n]|\\[^\n])*'/y,
  number: /[-+]?\.?\d[\w.]*/y,
  word: /[\p{L}_][\p{L}\p{Nd}_]*/uy,
  dot: /\./y,
  mark: /:=|[|(),=]/y,
} as const;
type TokenForm = keyof typeof tokenForms;
const forms: readonly TokenForm[] = [
  "field",
  "variable",
  "quoted",
  "raw",
  "character",
  "number",
  "word",
  "dot",
  "mark",
];

class ActionTokens {
  readonly #source: string;
  readonly #at: TextPosition;
  offset: number;
  trimsNext = false;

  constructor(source: string, offset: number, at: TextPosition) {
    this.#source = source;
    this.offset = offset;
    this.#at = at;
  }

  read(): readonly GoToken[] {
    const tokens: GoToken[] = [];
    for (;;) {
      const isSpaced = this.#take(space) !== "" || tokens.length === 0;
      if (isSpaced && this.#take(trimmingClose) !== undefined) {
        this.trimsNext = true;
        return tokens;
      }
      if (this.#take(close) !== undefined) return tokens;
      tokens.push(this.#token(isSpaced));
    }
  }

  #token(isSpaced: boolean): GoToken {
    for (const form of forms) {
      const text = this.#take(tokenForms[form]);
      if (text !== undefined) return toToken(form, text, isSpaced);
    }
    const isOver = this.offset === this.#source.length;
    throw new GoSyntaxError(isOver ? "an action is not closed" : "Go does not allow this character here", this.#at);
  }

  #take(form: RegExp): string | undefined {
    form.lastIndex = this.offset;
    const [text] = form.exec(this.#source) ?? [];
    if (text !== undefined) this.offset += text.length;
    return text;
  }
}

function toToken(form: TokenForm, text: string, isSpaced: boolean): GoToken {
  switch (form) {
    case "field":
      return { kind: "field", name: text.slice(1), isChained: !isSpaced };
    case "variable":
      return { kind: "variable", name: text.slice(1) };
    case "quoted":
      return toText(unquoted(text.slice(1, -1)));
    case "raw":
      return { kind: "text", value: text.slice(1, -1).replaceAll("\r", "") };
    case "character":
      return { kind: "strange" };
    case "number":
      return /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text) ? { kind: "number", value: Number(text) } : { kind: "strange" };
    case "word":
      return { kind: "word", name: text };
    case "dot":
      return { kind: "dot" };
    case "mark":
      return { kind: "mark", mark: text };
  }
}

function toText(value: string | undefined): GoToken {
  return value === undefined ? { kind: "strange" } : { kind: "text", value };
}

const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", "\\": "\\", '"': '"' };

/** Returns a quoted text with its escapes resolved; undefined if it has a rare escape, such as `\x41`. */
function unquoted(text: string): string | undefined {
  const isKnown = [...text.matchAll(/\\([\s\S])/g)].every(([, letter = ""]) => letter in escapes);
  return isKnown ? text.replaceAll(/\\([\s\S])/g, (_, letter: string) => escapes[letter] ?? "") : undefined;
}
