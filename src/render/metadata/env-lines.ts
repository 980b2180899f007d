/** `NAME=value` lines of env files: sorted names that every shell accepts, each once, and each value in one line. */

import { compareBytes } from "../../lib/order.ts";

/** A scalar and the keys that lead to it. */
export interface Leaf {
  readonly path: readonly string[];
  readonly value: string;
}

/** `NAME=value`, with its line's end. */
export interface EnvLine {
  readonly name: string;
  readonly text: string;
}

/** Names the leaves and sorts them by name. If several share a name, the lowest path in byte order wins. */
export function linesOf(leaves: readonly Leaf[]): readonly EnvLine[] {
  const named = leaves.map(({ path, value }) => ({ name: nameOf(path), path, value }));
  const sorted = named.toSorted((a, b) => compareBytes(a.name, b.name) || comparePaths(a.path, b.path));
  return (
    sorted
      .filter(({ name }, at) => name !== sorted[at - 1]?.name)
      // Joined, not concatenated: V8 stores a concatenation in pieces, and these strings live as long as their Group.
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

/**
 * A path as a variable's name that every shell accepts: upper-case letters, digits and `_`, without a leading digit.
 */
export function nameOf(path: readonly string[]): string {
  const name = path
    .join("_")
    .toUpperCase()
    .replaceAll(/[^A-Z0-9_]/gu, "_");
  return /^(?:\d|$)/.test(name) ? `_${name}` : name;
}

// Includes everything that GRUB or a shell would continue on the next line: the request's lines follow.
const needsQuotes = /[\p{Cc}\\"'`]|\$[({]|<<|^[#\s]|\s$/u;

/** An operator's value after the `=`: raw where that is safe, else in double quotes with escapes. */
function quote(value: string): string {
  if (!needsQuotes.test(value)) return value;
  const escaped = value.replaceAll(/[\\"$`]/g, String.raw`\$&`).replaceAll(/\p{Cc}/gu, escapeControl);
  return `"${escaped}"`;
}

function escapeControl(character: string): string {
  const known = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[character];
  return known ?? `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
}

/** The lines as one text. */
export function joined(lines: readonly EnvLine[]): string {
  return lines.map(({ text }) => text).join("");
}
