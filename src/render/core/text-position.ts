/** Places in a text, as people count them. */

/** A place in a text. Line and column count from 1. A column counts UTF-16 units. */
export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

export const textStart: TextPosition = { line: 1, column: 1 };

/** Returns the place where `text` ends if it begins at `from`. */
export function advance(from: TextPosition, text: string): TextPosition {
  const lastBreak = text.lastIndexOf("\n");
  if (lastBreak === -1) return { line: from.line, column: from.column + text.length };
  return { line: from.line + text.split("\n").length - 1, column: text.length - lastBreak };
}

/** Returns the place of an offset, which counts UTF-16 units. */
export function positionAt(text: string, offset: number): TextPosition {
  return advance(textStart, text.slice(0, offset));
}

/** True when `a` comes before `b`. */
export function isBefore(a: TextPosition, b: TextPosition): boolean {
  return comparePositions(a, b) < 0;
}

/**
 * Compares two places, for sorting.
 * @returns a negative number if `a` is first, zero for the same place, else a positive number.
 */
export function comparePositions(a: TextPosition, b: TextPosition): number {
  return a.line - b.line || a.column - b.column;
}
