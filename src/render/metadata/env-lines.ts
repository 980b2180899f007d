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

// The pattern also matches everything that makes GRUB or a shell read the next line as part of the value. The next
// lines can come from a request.
const needsQuotes = /[\p{Cc}\\"'`]|\$[({]|<<|^[#\s]|\s$/u;

/**
 * Writes a value of the metadata or the selector. A safe value stays as it is. Any other value gets double quotes and
 * escapes.
 */
function quote(value: string): string {
  if (!needsQuotes.test(value)) return value;
  const escaped = value.replaceAll(/[\\"$`]/g, String.raw`\$&`).replaceAll(/\p{Cc}/gu, escapeControl);
  return `"${escaped}"`;
}

function escapeControl(character: string): string {
  const known = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[character];
  return known ?? `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
}

/** Returns the lines as one text. */
export function joined(lines: readonly EnvLine[]): string {
  return lines.map(({ text }) => text).join("");
}
