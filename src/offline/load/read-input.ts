/** Reads the definitions from standard input, like from a file of a manifests directory. */

import type { FindingCode } from "../../model/objects/findings.ts";
import type { Admission } from "../../sources/admission/admission.ts";
import { decodeUtf8 } from "../../sources/admission/core-kinds.ts";
import { type FileContent, readText, unusableFile } from "../../sources/directory/read-file.ts";
import { textBegin } from "../../sources/directory/yaml-documents.ts";
import { piecesOf } from "./input-pieces.ts";
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
