/**
 * Reads a config as GRUB 2.06 does if somebody gives it as a script, and decides whether the request's text in it is
 * data. A signature covers only bytes, not a path, so GRUB runs any config with a good signature.
 *
 * GRUB reads line by line. It skips a line that begins with `#`. After a syntax error it drops the rest of the line,
 * and begins again with the next line, although a block or a quote was open. So each line is read from a fresh start,
 * and also on from every quote that earlier lines may have left open.
 */

/** What the words at some place are to GRUB. */
type WordPlace =
  /** A command, or the name of an assignment. */
  | "command"
  /** Arguments. */
  | "data"
  /** Arguments that are assignments or commands themselves. */
  | "code"
  /** Nothing: behind a block, only a separator or the end of an outer block is allowed. */
  | "ended";

/** Where GRUB is at the start of a line. */
interface LineState {
  readonly place: WordPlace;
  /** The open quote; empty for none. */
  readonly quote: "" | '"' | "'";
  /** The text of a command word so far, without its quotes; undefined between words. */
  readonly word: string | undefined;
}

const fresh: LineState = { place: "command", quote: "", word: undefined };

// GRUB has no command and no variable with such a name, so a word that begins like this runs and changes nothing:
// `"uuid":"...`. The other two begin lines of `/metadata`.
const inert = /^[^=]*:|^REQUEST_|^MAC=/;
// The next word is another command, or a name that the script defines.
const openers = new Set("! case do done elif else esac fi for function if select then until while".split(" "));
const coders = new Set(["set", "unset", "eval"]);

const bareRun = /[^{}|&$;<> \t\n'"\\]+/y;
const runs = { '"': /[^"\\$\n]+/y, "'": /[^'\n]+/y } as const;
const variable = /\$(?:[A-Za-z_]\w*|\d+|[?#*@]|\{(?:[A-Za-z_]\w*|\d+|[?#*@])\})/y;

/**
 * Returns true if no text of the request is a command, an assignment or syntax to GRUB, wherever GRUB begins to read.
 * @param ofRequest the start and end of each part that comes from the request, in order, in UTF-16 units.
 */
export function isDataToGrub(text: string, ofRequest: readonly number[]): boolean {
  const parts = new RequestParts(ofRequest);
  if (parts.list.length === 0) return true;
  // GRUB reads nothing of a line behind a NUL.
  if (text.includes("\0") || parts.list.some(({ from, to }) => /[\r\n]/.test(text.slice(from, to)))) return false;
  // GRUB skips carriage returns.
  if (text.includes("\r")) return isDataToGrub(text.replaceAll("\r", ""), parts.without("\r", text));
  const hasFunctions = /\bfunction\b/.test(text);
  let open: readonly LineState[] = [];
  for (let [from, to] = [0, 0]; from < parts.end; from = to + 1) {
    to = text.indexOf("\n", from);
    if (to === -1) to = text.length;
    if (text[from] === "#" && parts.at(from) === undefined) continue;
    const line = { text, parts, from, to, hasFunctions };
    const outcomes = [fresh, ...open].map((state) => new GrubLineReader(line, state).read());
    if (outcomes.includes("harmful")) return false;
    open = openStates(outcomes);
  }
  return true;
}

/** Returns the different states in which a line left something open. */
function openStates(outcomes: readonly LineOutcome[]): readonly LineState[] {
  const states = outcomes.flatMap((outcome) => (typeof outcome === "string" || outcome === fresh ? [] : [outcome]));
  return [...new Map(states.map((state) => [Object.values(state).join(), state])).values()];
}

/** What ends the reading of a line early. GRUB drops the rest of a line with a syntax error. */
type LineStop = "harmful" | "dropped";
type LineOutcome = LineState | LineStop;

interface GrubLine {
  readonly text: string;
  readonly parts: RequestParts;
  readonly from: number;
  /** The place of the line break. */
  readonly to: number;
  /** True if the text may define functions: only behind their names, a command can begin with a brace. */
  readonly hasFunctions: boolean;
}

class GrubLineReader {
  readonly #line: GrubLine;
  #at: number;
  #place: WordPlace;
  #quote: LineState["quote"];
  #word: string | undefined;
  /** True where no word of the command was read yet. */
  #isStart: boolean;
  /** The part that opened the quote; undefined if the template did. */
  #opener: TextPart | undefined;
  #isContinued = false;

  constructor(line: GrubLine, { place, quote, word }: LineState) {
    this.#line = line;
    this.#at = line.from;
    [this.#place, this.#quote, this.#word] = [place, quote, word];
    this.#isStart = word === undefined;
  }

  /** Returns the state at the start of the next line, unless the reading stops. */
  read(): LineOutcome {
    while (this.#at < this.#line.to) {
      const stop = this.#quote === "" ? this.#bare() : this.#quoted(this.#quote);
      if (stop !== undefined) return stop;
    }
    if (this.#opener !== undefined) return "harmful";
    if (this.#quote === "" && !this.#isContinued) return fresh;
    // Of a long word, only these marks still matter. So few states differ.
    const word = inert.test(this.#word ?? "") ? ":" : this.#word?.replace(/^[^=]{9,}/, "x").slice(0, 9);
    return { place: this.#place, quote: this.#quote, word };
  }

  #bare(): LineStop | undefined {
    const character = this.#line.text.charAt(this.#at);
    const run = this.#match(bareRun);
    if (run !== "" && (character !== "#" || this.#word !== undefined)) return this.#plain(run);
    switch (character) {
      case "|":
      case "&":
      case "<":
      case ">":
        return "dropped";
      case "$":
        return this.#dollar();
      case "\\":
        return this.#escape();
      case '"':
      case "'":
        return this.#open(character);
      default:
        return this.#betweenWords(character);
    }
  }

  /** Reads a blank, a comment, a semicolon or a brace. */
  #betweenWords(character: string): LineStop | undefined {
    const isBlank = character === " " || character === "\t";
    const isOfRequest = this.#line.parts.at(this.#at) !== undefined;
    if (isOfRequest && !(isBlank && this.#isDataHere(""))) return "harmful";
    if (character === "#") return "dropped";
    this.#at++;
    this.#endWord();
    return isBlank ? undefined : this.#separate(character);
  }

  #separate(character: string): LineStop | undefined {
    if (character === "}") this.#place = "ended";
    else if (character === ";") [this.#place, this.#isStart] = ["command", true];
    else if (this.#place === "ended") return "dropped";
    else if (this.#isStart && this.#place === "command" && !this.#line.hasFunctions) return "dropped";
    else [this.#place, this.#isStart] = ["command", true];
    return undefined;
  }

  #endWord(): void {
    const word = this.#word;
    this.#word = undefined;
    // A word that may be empty, such as a variable, leaves its place to the next one.
    if (this.#place !== "command" || word === undefined || word === "" || openers.has(word)) return;
    this.#place = coders.has(word) ? "code" : "data";
  }

  /**
   * Reads text without a meaning of its own.
   * @param meant the text without its quotes.
   */
  #plain(text: string, meant = text): LineStop | undefined {
    if (this.#place === "ended") return "dropped";
    if (this.#line.parts.isIn(this.#at, this.#at + text.length) && !this.#isDataHere(text)) return "harmful";
    this.#at += text.length;
    this.#isStart = false;
    this.#word = this.#place === "command" ? (this.#word ?? "") + meant : "";
    return undefined;
  }

  /** True if the request may write in this text at this place. */
  #isDataHere(text: string): boolean {
    if (this.#place !== "command") return this.#place === "data";
    let own = 0;
    while (own < text.length && this.#line.parts.at(this.#at + own) === undefined) own++;
    return inert.test((this.#word ?? "") + text.slice(0, own));
  }

  #open(quote: '"' | "'"): LineStop | undefined {
    const part = this.#line.parts.at(this.#at);
    if (this.#place === "ended") return "dropped";
    if (part !== undefined && !this.#isDataHere("")) return "harmful";
    this.#at++;
    [this.#quote, this.#opener, this.#isStart] = [quote, part, false];
    this.#word ??= "";
    return undefined;
  }

  #quoted(quote: '"' | "'"): LineStop | undefined {
    const run = this.#match(runs[quote]);
    if (run !== "") return this.#plain(run);
    const character = this.#line.text.charAt(this.#at);
    if (character === "\\") return this.#escape();
    if (character === "$") return this.#dollar();
    // Only who opened a quote closes it.
    if (this.#line.parts.at(this.#at) !== this.#opener) return "harmful";
    this.#at++;
    [this.#quote, this.#opener] = ["", undefined];
    return undefined;
  }

  #escape(): LineStop | undefined {
    const { parts, to } = this.#line;
    const part = parts.at(this.#at);
    if (part !== undefined && parts.at(this.#at + 1) !== part) return "harmful";
    const [start, end] = [this.#at, this.#at + 2];
    if (end <= to) return this.#plain(this.#line.text.slice(start, end), this.#line.text.slice(start + 1, end));
    [this.#isContinued, this.#isStart] = [true, false];
    this.#word ??= "";
    this.#at++;
    return undefined;
  }

  #dollar(): LineStop | undefined {
    const { parts } = this.#line;
    const length = Math.max(1, this.#match(variable).length);
    if (parts.isIn(this.#at, this.#at + length)) return "harmful";
    if (length === 1 && this.#quote === "" && this.#line.text[this.#at + 1] !== '"') return "dropped";
    this.#at += length;
    this.#isStart = false;
    this.#word ??= "";
    return undefined;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#line.text)?.[0] ?? "";
  }
}

/** A part of a text, in UTF-16 units. */
interface TextPart {
  readonly from: number;
  readonly to: number;
}

/** The parts of a text that come from the request. */
class RequestParts {
  /** In order. None is empty. */
  readonly list: readonly TextPart[];

  /** @param offsets the start and end of each part, in order. */
  constructor(offsets: readonly number[]) {
    const all = offsets.flatMap((from, at) => (at % 2 === 0 ? [{ from, to: offsets[at + 1] ?? from }] : []));
    this.list = all.filter(({ from, to }) => from < to);
  }

  /** The end of the last part; 0 without parts. */
  get end(): number {
    return this.list.at(-1)?.to ?? 0;
  }

  /** Returns the part with a character; undefined if the request did not write it. */
  at(offset: number): TextPart | undefined {
    const part = this.#endingAfter(offset);
    return part !== undefined && part.from <= offset ? part : undefined;
  }

  /** True if the request wrote any of these characters. */
  isIn(from: number, to: number): boolean {
    const part = this.#endingAfter(from);
    return part !== undefined && part.from < to;
  }

  /** Returns the offsets of the parts in the text without a character. */
  without(character: string, text: string): readonly number[] {
    const moved = (offset: number) => offset - (text.slice(0, offset).split(character).length - 1);
    return this.list.flatMap(({ from, to }) => [moved(from), moved(to)]);
  }

  #endingAfter(offset: number): TextPart | undefined {
    let [low, high] = [0, this.list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.list[middle]?.to ?? 0) > offset) high = middle;
      else low = middle + 1;
    }
    return this.list[low];
  }
}
