/** Writes words of GRUB's script language: it fills in tokens and quotes values. */

import { type Labels, sentLabels } from "../../model/labels/labels.ts";
import { hasBlankByte } from "../boot/kernel-words.ts";
import { type Filled, hasValue, type Pieces, piecesOf, split, textOf, valueMatches } from "../boot/pieces.ts";
import { RenderError } from "../core/render-error.ts";

/**
 * Fills in iPXE's `${...}` tokens from the labels of the request, because GRUB does not know them. A token of a label
 * that every boot script sends becomes empty if it was not sent, as in iPXE. An unfinished token stays. Tokens in a
 * value are not filled in.
 * @throws {RenderError} for another token that no label fills: an empty text could name another file or another server.
 */
export function fillTokens(text: Filled, labels: Labels): Pieces {
  const pieces = piecesOf(text);
  const found = [...textOf(text).matchAll(tokens)];
  if (found.length === 0) return pieces;
  const ends = found.flatMap(({ index, 0: token }) => {
    const end = index + token.length;
    return [index, index + 2, end - 1, end];
  });
  const parts = split(pieces, ends);
  const filled = found.flatMap(({ 1: name = "" }, at): Pieces => {
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

/** The first iPXE token in a text that no label can fill, such as `next-server`; undefined if there is none. */
export function foreignToken(text: string): string | undefined {
  const names = [...text.matchAll(tokens)].map(({ 1: name = "" }) => name);
  return names.find((name) => {
    const [setting, format = ""] = settingOf(name);
    return !(macToken.test(name) || (chainLabels.includes(setting) && textFormats.has(format)));
  });
}

// As in iPXE, a token begins at the last `${` before its end.
const tokens = /\$\{((?:(?!\$\{)[^}])*)\}/g;
const alwaysKnown: ReadonlySet<string> = new Set(["uuid", "mac", "hostname", "serial", "domain"]);
/** Labels of text that `/chain.ipxe` makes machines send, and that a GRUB can send. */
export const chainLabels: readonly string[] = [
  ...alwaysKnown,
  ...["arch", "buildarch", "platform", "manufacturer", "product", "asset"],
];
const textFormats: ReadonlySet<string> = new Set(["", "string", "uristring"]);
/** GRUB reports one card, so a token of any card becomes the MAC address of that one unless its own label is sent. */
const macToken = /^(?:net[\dX]\/)?mac(?::(?:hex|hexhyp|hexraw))?$/;
const macSeparators: Readonly<Record<string, string>> = { hexhyp: "-", hexraw: "" };

function tokenValue(name: string, labels: Labels): string {
  const sent = sentLabels(labels);
  const [setting, format = ""] = settingOf(name);
  if (macToken.test(name)) {
    const mac = sent.get(setting) || sent.get("mac") || "";
    return mac.replaceAll(/[:-]/g, macSeparators[format] ?? ":");
  }
  const value = sent.get(setting) ?? (setting === "buildarch" ? sent.get("arch") : undefined);
  const isKnown = value !== undefined || alwaysKnown.has(setting);
  if (!(isKnown && textFormats.has(format))) throw new RenderError("grubToken");
  return format === "uristring" ? encodeURIComponent((value ?? "").toWellFormed()) : (value ?? "");
}

function settingOf(name: string): readonly [setting: string, format?: string] {
  const [setting = "", format] = name.split(":", 2);
  return format === undefined ? [setting] : [setting, format];
}
