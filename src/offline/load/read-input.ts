/** Reads the definitions from standard input, like from a file of a manifests directory. */

import type { FindingCode } from "../../model/objects/findings.ts";
import type { Admission } from "../../sources/admission/admission.ts";
import { decodeUtf8 } from "../../sources/admission/core-kinds.ts";
import { type FileContent, readText, unusableFile } from "../../sources/directory/read-file.ts";
import { type TextStart, textBegin } from "../../sources/directory/yaml-documents.ts";
import type { WrittenText } from "./object-places.ts";

/** The input's name in messages. */
export const inputLabel = "<stdin>";

// The pieces between two reports of progress: 10,000 objects make a hundred reports.
const piecesPerTurn = 100;

/** A part of the input and what it defines. */
export interface ReadPart {
  readonly text: WrittenText;
  readonly file: FileContent;
}

/**
 * Reads the input, and returns at least one part.
 * @param progress called from time to time with the number of parts that are read, and the number of all parts.
 */
export function readInput(
  bytes: Uint8Array,
  admission: Admission,
  progress: (count: number, total: number) => void = () => undefined,
): readonly ReadPart[] {
  const text = decodeUtf8(bytes);
  if (text === undefined || text.includes("\0")) {
    return [unusable("not-text", "The input is not UTF-8 text: give YAML or JSON")];
  }
  const pieces = piecesOf(text);
  const read: ReadPart[] = [];
  for (const [at, piece] of pieces.entries()) {
    const file = readText({ path: inputLabel, ...piece }, admission);
    const { start } = piece;
    if (file !== undefined) read.push({ text: { file: inputLabel, start, read: () => piece.text }, file });
    if (at % piecesPerTurn === 0) progress(at, pieces.length);
  }
  if (read.length === 0) return [unusable("no-document", "The input holds no document: give Profiles and Groups")];
  return read;
}

function unusable(code: FindingCode, message: string): ReadPart {
  return {
    text: { file: inputLabel, start: textBegin, read: () => "" },
    file: unusableFile(inputLabel, code, message),
  };
}

interface InputPiece {
  readonly text: string;
  /** The place in the whole text where the piece begins. */
  readonly start: TextStart;
}

/**
 * Splits a text of many objects into pieces, in their order, that can be read one by one: `kubectl get -o yaml` writes
 * tens of megabytes for 10,000 objects, too much for one parse. A text is split at `---`. A document that is a List in
 * the form of kubectl is then split into its items. A text with directives stays in one piece.
 *
 * In the List that kubectl writes, items begin with `- ` in the first column. No other line does, because go-yaml
 * indents values of several lines. If a blank replaces the dash, an item can be parsed alone, and its columns stay the
 * same. (go-yaml writes no anchors that another item could use.)
 */
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
