/** What is wrong with a file or directory, for the log as a sentence with its place, and in parts for `davit lint`. */

import type { Position } from "../lib/position.ts";
import type { FindingCode } from "../model/findings.ts";
import type { SourceProblem } from "../model/source.ts";

export interface FileProblem extends SourceProblem {
  readonly code: FindingCode;
  /** As people call it. */
  readonly file: string;
  /** Undefined for the file as a whole. */
  readonly at?: Position;
  /** The message without the place. */
  readonly text: string;
}

/** A problem of a file, or directory, as a whole. */
export function wholeProblem(file: string, code: FindingCode, message: string): FileProblem {
  return { origin: file, message, code, file, text: message };
}
