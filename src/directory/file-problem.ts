/** A problem of a file or directory: for the log, a sentence with its place; for `davit lint`, in parts. */

import type { Position } from "../lib/position.ts";
import type { FindingCode } from "../model/findings.ts";
import type { SourceProblem } from "../model/source.ts";

export interface FileProblem extends SourceProblem {
  readonly code: FindingCode;
  /** The file's name in messages. */
  readonly file: string;
  /** Undefined for the file as a whole. */
  readonly at?: Position;
  /** The message without the place. */
  readonly text: string;
}

export function wholeProblem(file: string, code: FindingCode, message: string): FileProblem {
  return { origin: file, message, code, file, text: message };
}
