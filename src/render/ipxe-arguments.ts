/**
 * Arguments of a kernel as iPXE reads them. It splits a line at white space, ends a command at a word `||`, `&&` or `;`
 * and the line at a word that begins with `#`, then fills `${...}` in each word, over and over until none is left, and
 * hands the words on with one blank between. Quotes and backslashes mean nothing to it. (Measured with 1.0.0+ of 2019.)
 *
 * So a value that has blanks is quoted for Linux, and where iPXE would misread a word of it, its blanks are hidden in a
 * setting, which is filled in after the line was split. What its author wrote stays as it is.
 */

import { hasOpenQuote, isFilled, isHarmless, isOneWord, quoted, type Word, wordsOf } from "./kernel-words.ts";
import { type Filled, type Pieces, textOf, valueMatches } from "./pieces.ts";
import { RenderError } from "./render-error.ts";

export interface IpxeArguments {
  /** Commands that come before the kernel's line: nearly always none. */
  readonly settings: readonly string[];
  /** One text for each argument. */
  readonly texts: readonly string[];
}

/**
 * Writes arguments for iPXE.
 * @throws {RenderError} for a value that no line can hold.
 */
export function ipxeArguments(args: readonly Filled[]): IpxeArguments {
  if (args.every(isHarmless)) return { settings: [], texts: args.map(textOf) };
  // It would change what the quotes around a value mean.
  if (args.some(hasOpenQuote)) throw new RenderError("openQuote");
  const texts = args.map((arg) => (typeof arg === "string" ? arg : wordsOf(arg).map(wordText).join(" ")));
  const usesBlank = texts.some((text) => text.includes(blank));
  return { settings: usesBlank ? [`set ${blankName}:hex 20`] : [], texts };
}

// The name is davit's, so that it replaces no setting of the machine's or the author's.
const blankName = "davit-blank";
const blank = `\${${blankName}:string}`;

function wordText(word: Word): string {
  const { source } = word;
  if (!isFilled(word)) return textOf(source);
  if (makesToken(source)) throw new RenderError("valueIsToken");
  const shapes = [source, quoted(word)].filter(isOneWord).map(textOf);
  const written = [...shapes, ...shapes.map((text) => text.replaceAll(" ", blank))].find(isReadAsWritten);
  if (written === undefined) throw new RenderError("valueIsNoWord");
  return written;
}

/** True when a value would have a part in what iPXE fills: there is no escape for that. */
function makesToken(word: Pieces): boolean {
  const hasOwnToken = word.some(({ text, isValue }) => !isValue && text.includes("${"));
  if (hasOwnToken) return valueMatches(word, /[${}]/);
  const text = textOf(word);
  const begin = text.indexOf("${");
  return begin >= 0 && text.indexOf("}", begin) >= 0;
}

function isReadAsWritten(text: string): boolean {
  return text.split(" ").every((word) => word !== "" && !/^(?:#.*|\|\||&&|;)$/s.test(word));
}
