/**
 * Splits a text of many objects into pieces that can be read one by one: `kubectl get -o yaml` writes tens of megabytes
 * for 10,000 objects, too much for one parse. A text in another form stays in one piece. Pure.
 *
 * kubectl writes one List. Its items begin with `- ` in the first column. No other line does, because go-yaml indents
 * values of several lines. If a blank replaces the dash, an item can be parsed alone, and its columns stay the same.
 * (go-yaml writes no anchors that another item could use.)
 */

import type { TextStart } from "../../sources/directory/yaml-documents.ts";

interface InputPiece {
  readonly text: string;
  /** The place in the whole text where the piece begins. */
  readonly start: TextStart;
}

/** Splits a text into pieces, in their order. */
export function piecesOf(text: string): readonly InputPiece[] {
  const lines = text.split(/(?<=\n)/);
  // A text with directives is not split, because a directive belongs to the document after it.
  if (lines.some((line) => line.startsWith("%"))) return [{ text, start: { line: 1, document: 1 } }];
  const pieces: InputPiece[] = [];
  let first = 0;
  for (let at = 1; at <= lines.length; at++) {
    if (at < lines.length && !isSeparator(lines[at])) continue;
    const document = pieces.length === 0 ? 1 : (pieces.at(-1)?.start.document ?? 0) + 1;
    pieces.push(...itemsOf(lines.slice(first, at), { line: first + 1, document }));
    first = at;
  }
  return pieces;
}

function isSeparator(line: string | undefined): boolean {
  return line !== undefined && /^---(?:\s|$)/.test(line);
}

/** Returns the items of a List in kubectl's form; any other text as one piece. */
function itemsOf(lines: readonly string[], start: TextStart): readonly InputPiece[] {
  const head = isSeparator(lines[0]) ? 1 : 0;
  const isList = isLine(lines[head], "apiVersion: v1") && isLine(lines[head + 1], "items:");
  const end = lines.findLastIndex((line) => isLine(line, "kind: List"));
  const first = head + 2;
  if (!isList || end <= first || !lines.slice(first, end).every(isOfItem)) return [{ text: lines.join(""), start }];
  const pieces: InputPiece[] = [];
  let from = first;
  for (let at = first + 1; at <= end; at++) {
    if (at < end && !lines[at]?.startsWith("- ")) continue;
    const text = withoutStatus(lines.slice(from, at)).join("");
    pieces.push({ text: ` ${text.slice(1)}`, start: { ...start, line: start.line + from } });
    from = at;
  }
  return pieces;
}

function isLine(line: string | undefined, text: string): boolean {
  return line?.trimEnd() === text;
}

function isOfItem(line: string, at: number): boolean {
  return line.startsWith("- ") || (at > 0 && (line.startsWith("  ") || line.trim() === ""));
}

/** Empties the lines of an item's status: davit does not read it, and it is half of the text. Line numbers stay. */
function withoutStatus(lines: readonly string[]): readonly string[] {
  const from = lines.findIndex((line) => isLine(line, "  status:"));
  if (from === -1) return lines;
  const next = lines.findIndex((line, at) => at > from && /^ {2}[^\s]/.test(line));
  const to = next === -1 ? lines.length : next;
  return lines.map((line, at) => (at >= from && at < to ? "\n" : line));
}
