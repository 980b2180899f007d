/**
 * Finds where a place in a scalar's value is in the YAML text: a mistake at line 3 of a template may be at line 20 of
 * its file. Pure.
 */

import type { Position } from "../lib/position.ts";

/** A scalar and the text around it. */
export interface WrittenScalar {
  /** The whole text. */
  readonly text: string;
  /** Offset of its first character: a quote, the mark of a block, or the value itself. */
  readonly from: number;
  /** Offset behind its last character. */
  readonly to: number;
  readonly value: string;
}

/**
 * Finds a place.
 * @returns its offset in the text; undefined where the text differs from the value: folded, escaped, or on one line
 *   instead of several.
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
  // The line must contain the value's line unchanged.
  const before = isBlock ? raw.length - wanted.length : raw.indexOf(wanted);
  if (before < 0 || raw.slice(before, before + wanted.length) !== wanted) return undefined;
  if (!isBlock && written.length !== value.split("\n").length) return undefined;
  const lineFrom = written.slice(0, at).reduce((sum, each) => sum + each.length + 1, from);
  return lineFrom + before + column - 1;
}
