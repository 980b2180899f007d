/**
 * Where a place of a scalar's value stands in the YAML text: what is wrong at line 3 of a template is at line 20 of the
 * file that it is written in. Pure.
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
 * @returns its offset in the text; undefined where the value is not written as it is: folded, escaped, or on one line
 *   what has several.
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
  // A value that ends its line less what closes it is written as it is.
  const before = isBlock ? raw.length - wanted.length : raw.indexOf(wanted);
  if (before < 0 || raw.slice(before, before + wanted.length) !== wanted) return undefined;
  if (!isBlock && written.length !== value.split("\n").length) return undefined;
  const lineFrom = written.slice(0, at).reduce((sum, each) => sum + each.length + 1, from);
  return lineFrom + before + column - 1;
}
