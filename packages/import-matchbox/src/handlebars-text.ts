/**
 * Writes a Handlebars template that yields exactly the given texts. Three things would change a text: braces and
 * backslashes that look like tags, a brace next to a tag, and a block's tag alone on its line. Handlebars removes such
 * a line, but Go leaves an empty line. The empty comment `{{!}}` before the tag keeps the line.
 */

type HandlebarsPiece =
  | { readonly kind: "text"; text: string }
  | { readonly kind: "tag"; readonly tag: string; isBlock: boolean };

const emptyComment = "{{!}}";

export class HandlebarsText {
  readonly #pieces: HandlebarsPiece[] = [];

  /** Adds text, which the template prints unchanged. */
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
    // A single backslash before a tag would escape the tag. From two or more, Handlebars removes one. So add one.
    if (escaped.endsWith("\\")) return `${escaped}\\`;
    return touches(text) ? `${escaped} ` : escaped;
  }

  #tag({ tag, isBlock }: HandlebarsPiece & { kind: "tag" }, at: number): string {
    const before = this.#textAt(at - 1);
    const guard = isBlock && this.#isAlone(at) ? emptyComment : "";
    return before !== undefined && touches(before) ? `{{~${tag}}}` : `${guard}{{${tag}}}`;
  }

  /** True if Handlebars may find the tag alone on its line. */
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
 * Makes a template that yields a text.
 * @param replaceUrl a URL without a slash at the end. The template prints davit's own URL in its place.
 */
export function literalTemplate(text: string, replaceUrl?: string): string {
  const output = new HandlebarsText();
  writeWithUrl(output, text, replaceUrl, "davit.url");
  return output.toString();
}

/** Adds a text in which `tag` replaces each `url`. */
export function writeWithUrl(output: HandlebarsText, text: string, url: string | undefined, tag: string): void {
  const [first = "", ...others] = url === undefined ? [text] : text.split(urlForm(url));
  output.text(first);
  for (const other of others) {
    output.print(tag);
    output.text(other);
  }
}

/** True if `writeWithUrl` would replace something. */
export function hasUrl(text: string, url: string): boolean {
  return urlForm(url).test(text);
}

/** Matches a URL, but not as the beginning of a longer host or port: `http://boot:80` is not in `http://boot:8080`. */
function urlForm(url: string): RegExp {
  return new RegExp(`${url.replaceAll(/[^\w]/g, "\\$&")}(?![\\w.:-])`);
}

/** True if only white space follows the last line feed. A regular expression would be slow, see `go-tokens.ts`. */
function endsLine(text: string): boolean {
  return text.slice(text.trimEnd().length).includes("\n");
}

/** True if the last brace of the text would become part of a tag after it. */
function touches(text: string): boolean {
  return text.endsWith("{");
}

function escapeBraces(text: string): string {
  // If the number of braces is odd, the first one is not escaped. If a backslash of the text is directly before the
  // escaped braces, `{{!}}` separates it from the backslash that escapes them.
  return text.replaceAll(/(\\*)(\{?)((?:\{\{)+)/g, (_, backslashes: string, odd: string, pairs: string) => {
    const kept = backslashes === "" || odd !== "" ? backslashes : `${backslashes}\\${emptyComment}`;
    return kept + odd + "\\{{".repeat(pairs.length / 2);
  });
}
