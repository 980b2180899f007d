/** Writes words of GRUB's script language: it fills in tokens and quotes values. */

import { type Labels, sentLabels } from "../../model/labels/labels.ts";
import { hasBlankByte } from "../boot/kernel-words.ts";
import { type Filled, hasValue, type Pieces, piecesOf, split, textOf, valueMatches } from "../boot/pieces.ts";
import { RenderError } from "../core/render-error.ts";

/**
 * Fills in iPXE's `${...}` tokens from the labels of the request, because GRUB does not know them. A token whose label
 * is unknown or was not sent becomes empty, as in iPXE. An unfinished token stays. Tokens in a value are not filled in.
 */
export function fillTokens(text: Filled, labels: Labels): Pieces {
  const pieces = piecesOf(text);
  // As in iPXE, a token begins at the last `${` before its end.
  const tokens = [...textOf(text).matchAll(/\$\{((?:(?!\$\{)[^}])*)\}/g)];
  if (tokens.length === 0) return pieces;
  const ends = tokens.flatMap(({ index, 0: token }) => {
    const end = index + token.length;
    return [index, index + 2, end - 1, end];
  });
  const parts = split(pieces, ends);
  const filled = tokens.flatMap(({ 1: name = "" }, at): Pieces => {
    const [before = [], begin = [], inner = [], end = []] = parts.slice(4 * at, 4 * at + 4);
    if (hasValue(begin) || hasValue(end)) return [...before, ...begin, ...inner, ...end];
    return [...before, { text: tokenValue(name, labels), isValue: true }];
  });
  return [...filled, ...(parts.at(-1) ?? [])];
}

/**
 * Returns a word for the kernel in the form that GRUB needs. GRUB puts double quotes around a word with a blank. It
 * also puts a backslash before each quote and backslash, and Linux does not remove these.
 * @throws {RenderError} for a value with a quote or a backslash, or with the byte A0 in a word that GRUB does not
 * quote.
 */
export function kernelWord(word: Pieces): string {
  if (valueMatches(word, /["'\\]/)) throw new RenderError("grubEscapes");
  if (hasBlankByte(word) && !textOf(word).includes(" ")) throw new RenderError("grubSplits");
  return textOf(word);
}

/** Quotes a text for GRUB. It drops control characters, and escapes backslashes, double quotes and dollars. */
export function quote(text: string): string {
  return `"${text.replaceAll(/\p{Cc}/gu, "").replaceAll(/[\\"$]/g, String.raw`\$&`)}"`;
}

const tokenLabels: ReadonlySet<string> = new Set(["uuid", "mac", "hostname", "serial", "domain"]);

function tokenValue(name: string, labels: Labels): string {
  const sent = sentLabels(labels);
  if (name === "mac:hexhyp") return (sent.get("mac") ?? "").replaceAll(":", "-");
  return tokenLabels.has(name) ? (sent.get(name) ?? "") : "";
}
