/**
 * Writes the text of a Handlebars template so that it yields exactly the given texts. Three things would change them:
 * braces and backslashes that look like tags, braces that touch a tag, and block tags alone on their line: Handlebars
 * removes such a line, while Go's templates leave an empty one. The empty comment `{{!}}` in front of a tag keeps the
 * line.
 */

type HandlebarsPiece =
  | { readonly kind: "text"; text: string }
  | { readonly kind: "tag"; readonly tag: string; isBlock: boolean };

const emptyComment = "{{!}}";

export class HandlebarsText {
  readonly #pieces: HandlebarsPiece[] = [];

  /** Adds text that is printed as it is. */
  text(text: string): void {
    const last = this.#pieces.at(-1);
    if (last?.kind === "text") last.text += text;
    else if (text !== "") this.#pieces.push({ kind: "text", text });
  }

  /** Adds `{{tag}}`, which prints something. */
  print(tag: string): void {
    this.#pieces.push({ kind: "tag", tag, isBlock: false });
  }

  /** Adds `{{tag}}`, which prints nothing itself: a block's tag, or a comment. */
  block(tag: string): void {
    this.#pieces.push({ kind: "tag", tag, isBlock: true });
  }

  toString(): string {
    return this.#pieces
      .map((piece, at) => (piece.kind === "text" ? this.#written(piece.text, at) : this.#tag(piece, at)))
      .join("");
  }

  #written(text: string, at: number): string {
    const begin = at > 0 && text.startsWith("}") ? emptyComment : "";
    const escaped = begin + escapeBraces(text);
    if (at === this.#pieces.length - 1) return escaped;
    // One backslash before a tag would escape the tag. Of two or more, Handlebars drops one. So one more is added.
    if (escaped.endsWith("\\")) return `${escaped}\\`;
    return touches(text) ? `${escaped} ` : escaped;
  }

  #tag({ tag, isBlock }: HandlebarsPiece & { kind: "tag" }, at: number): string {
    const before = this.#textAt(at - 1);
    const guard = isBlock && this.#isAlone(at) ? emptyComment : "";
    return before !== undefined && touches(before) ? `{{~${tag}}}` : `${guard}{{${tag}}}`;
  }

  /** True if the tag could count as alone on its line, and in case of doubt. */
  #isAlone(at: number): boolean {
    const before = this.#textAt(at - 1);
    const after = this.#textAt(at + 1);
    const begins = at === 0 || (before !== undefined && (endsLine(before) || (at === 1 && before.trim() === "")));
    const last = this.#pieces.length - 1;
    const ends =
      at === last || (after !== undefined && (/^\s*\n/.test(after) || (at + 1 === last && after.trim() === "")));
    return begins && ends;
  }

  #textAt(at: number): string | undefined {
    const piece = this.#pieces[at];
    return piece?.kind === "text" ? piece.text : undefined;
  }
}

/**
 * Makes a template that yields a text, with davit's own URL in the place of another.
 * @param replaceUrl without a slash at the end; none leaves the text as it is.
 */
export function literalTemplate(text: string, replaceUrl?: string): string {
  const output = new HandlebarsText();
  writeWithUrl(output, text, replaceUrl, "davit.url");
  return output.toString();
}

/** Adds a text, with a tag in place of each `url`. */
export function writeWithUrl(output: HandlebarsText, text: string, url: string | undefined, tag: string): void {
  const [first = "", ...others] = url === undefined ? [text] : text.split(urlForm(url));
  output.text(first);
  for (const other of others) {
    output.print(tag);
    output.text(other);
  }
}

/** True when `writeWithUrl` would replace something. */
export function hasUrl(text: string, url: string): boolean {
  return urlForm(url).test(text);
}

/** Not within a longer name or port: `http://boot:80` is not in `http://boot:8080`. */
function urlForm(url: string): RegExp {
  return new RegExp(`${url.replaceAll(/[^\w]/g, "\\$&")}(?![\\w.:-])`);
}

/** True when only white space follows a text's last line feed; without a regular expression, see `go-tokens.ts`. */
function endsLine(text: string): boolean {
  return text.slice(text.trimEnd().length).includes("\n");
}

/** True when the text's last brace would become part of a following tag. */
function touches(text: string): boolean {
  return text.endsWith("{");
}

function escapeBraces(text: string): string {
  // With an odd number of braces, the first stays alone. If the text has a backslash right before the escaped braces,
  // `{{!}}` separates it from the backslash that escapes them.
  return text.replaceAll(/(\\*)(\{?)((?:\{\{)+)/g, (_, backslashes: string, odd: string, pairs: string) => {
    const kept = backslashes === "" || odd !== "" ? backslashes : `${backslashes}\\${emptyComment}`;
    return kept + odd + "\\{{".repeat(pairs.length / 2);
  });
}
