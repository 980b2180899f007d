/**
 * Writes `NAME=value` lines of env files. Every shell accepts the names. They are sorted, and each occurs once. Each
 * value takes one line.
 */

import { compareBytes } from "../../lib/order.ts";

/** A scalar and the keys that lead to it. */
export interface Leaf {
  readonly path: readonly string[];
  readonly value: string;
}

/** A `NAME=value` line. `text` is the whole line with its line break. */
export interface EnvLine {
  readonly name: string;
  readonly text: string;
}

/**
 * Makes lines of leaves, sorted by name. If several leaves share a name, the leaf with the lowest path in byte order
 * wins.
 */
export function linesOf(leaves: readonly Leaf[]): readonly EnvLine[] {
  const named = leaves.map(({ path, value }) => ({ name: nameOf(path), path, value }));
  const sorted = named.toSorted((a, b) => compareBytes(a.name, b.name) || comparePaths(a.path, b.path));
  return (
    sorted
      .filter(({ name }, at) => name !== sorted[at - 1]?.name)
      // `join`, not `+`: V8 stores the result of `+` in pieces. These strings live as long as their Group, so memory
      // matters.
      .map(({ name, value }) => ({ name, text: [name, "=", quote(value), "\n"].join("") }))
  );
}

function comparePaths(a: readonly string[], b: readonly string[]): number {
  for (const [at, key] of a.entries()) {
    const order = at < b.length ? compareBytes(key, b[at] ?? "") : 1;
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** Returns a path as a name that every shell accepts: upper-case letters, digits and `_`, without a leading digit. */
export function nameOf(path: readonly string[]): string {
  const name = path
    .join("_")
    .toUpperCase()
    .replaceAll(/[^A-Z0-9_]/gu, "_");
  return /^(?:\d|$)/.test(name) ? `_${name}` : name;
}

/**
 * Writes a value of the metadata or the selector: as it is, so that every reader of env files gets the operator's text.
 * Only a value with a control character, which could break the line, gets double quotes and escapes.
 */
function quote(value: string): string {
  if (!/\p{Cc}/u.test(value)) return value;
  const escaped = value.replaceAll(/[\\"$`]/g, String.raw`\$&`).replaceAll(/\p{Cc}/gu, escapeControl);
  return `"${escaped}"`;
}

function escapeControl(character: string): string {
  const known = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[character];
  return known ?? `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
}

const escapeOrQuoted = /\\.|'[^']*'|"[^\\"`$]*(?:(?:\\.|\$(?![({[]))[^\\"`$]*)*"/gsu;

/**
 * True if a line leaves a quote, a substitution or the like open for a shell, so that the shell reads the next lines as
 * part of it. True also for some lines that do not.
 */
export function leavesOpen({ text }: EnvLine): boolean {
  if (!/[\\"'`$<]/.test(text)) return false;
  return /\$["']/.test(text) || /[\\"'`]|\$[({[]|<</.test(text.slice(0, -1).replaceAll(escapeOrQuoted, ""));
}

/** Returns the lines as one text. */
export function joined(lines: readonly EnvLine[]): string {
  return lines.map(({ text }) => text).join("");
}
