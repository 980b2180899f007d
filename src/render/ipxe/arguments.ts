/**
 * Writes a kernel's arguments as iPXE reads them. iPXE splits a line at white space. A word `||`, `&&` or `;` ends a
 * command, and a word that begins with `#` ends the line. Then iPXE fills in each `${...}` of a word, until none is
 * left. It passes the words on with one blank between them. Quotes and backslashes have no meaning to iPXE. (Measured
 * with 1.0.0+ of 2019.)
 *
 * So davit quotes a value with blanks for Linux. If iPXE would misread one of its words, davit replaces each blank with
 * a `${...}` that contains a blank. iPXE fills it in after it has split the line. The author's own text stays
 * unchanged.
 */

import { hasOpenQuote, isFilled, isHarmless, isOneWord, quoted, type Word, wordsOf } from "../boot/kernel-words.ts";
import { type Filled, type Pieces, textOf, valueMatches } from "../boot/pieces.ts";
import { RenderError } from "../core/render-error.ts";

export interface IpxeArguments {
  /** Commands before the kernel's line: nearly always none. */
  readonly settings: readonly string[];
  /** One text for each argument. */
  readonly texts: readonly string[];
}

/**
 * Writes arguments for iPXE.
 * @throws {RenderError} for a value that iPXE or Linux would misread in every form that davit can write.
 */
export function ipxeArguments(args: readonly Filled[]): IpxeArguments {
  if (args.every(isHarmless)) return { settings: [], texts: args.map(textOf) };
  // An open quote of the author would change the meaning of the quotes that davit puts around a value.
  if (args.some(hasOpenQuote)) throw new RenderError("openQuote");
  const texts = args.map((arg) => (typeof arg === "string" ? arg : wordsOf(arg).map(wordText).join(" ")));
  const usesBlank = texts.some((text) => text.includes(blank));
  return { settings: usesBlank ? [`set ${blankName}:hex 20`] : [], texts };
}

// The prefix `davit-` keeps this from overwriting a setting of the machine or the author.
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

/** True if a value would become part of a `${...}` that iPXE fills in. iPXE has no escape against that. */
function makesToken(word: Pieces): boolean {
  const hasOwnToken = word.some(({ text, isValue }) => !isValue && text.includes("${"));
  if (hasOwnToken) return valueMatches(word, /[${}]/);
  const text = textOf(word);
  const begin = text.indexOf("${");
  return begin >= 0 && text.indexOf("}", begin) >= 0;
}

/** True if iPXE keeps every word and every blank of a text. */
function isReadAsWritten(text: string): boolean {
  return text.split(" ").every((word) => word !== "" && !/^(?:#.*|\|\||&&|;)$/s.test(word));
}
