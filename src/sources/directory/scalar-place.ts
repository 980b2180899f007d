/**
 * Converts a place in the value of a scalar to a place in the YAML text: line 3 of a template may be line 20 of its
 * file. It does no I/O.
 */

import type { Position } from "../../lib/text/position.ts";

/** A scalar and the text around it. */
interface WrittenScalar {
  /** The whole text. */
  readonly text: string;
  /** Offset of the scalar's first character: a quote, the mark of a block, or the first character of the value. */
  readonly from: number;
  /** Offset after the scalar's last character. */
  readonly to: number;
  readonly value: string;
}

/**
 * Finds a place of the value in the text.
 * @returns the offset in the text; undefined if the text writes the value in another way: folded, escaped, or on one
 *   line instead of several.
 */
export function offsetInScalar(
  { text, from, to, value }: WrittenScalar,
  { line, column }: Position,
): number | undefined {
  const written = text.slice(from, to).split("\n");
  const isBlock = /^[|>]/.test(written[0] ?? "");
  const at = isBlock ? line : line - 1;
  const raw = written[at]?.replace(/\r$/, "");
  const wanted = value.split("\n")[line - 1];
  if (raw === undefined || wanted === undefined) return undefined;
  // The line of the text must contain the line of the value unchanged.
  const before = isBlock ? raw.length - wanted.length : raw.indexOf(wanted);
  if (before < 0 || raw.slice(before, before + wanted.length) !== wanted) return undefined;
  if (!isBlock && written.length !== value.split("\n").length) return undefined;
  const lineFrom = written.slice(0, at).reduce((sum, each) => sum + each.length + 1, from);
  return lineFrom + before + column - 1;
}
