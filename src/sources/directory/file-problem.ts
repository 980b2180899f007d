/** A problem of a file or directory. The log shows it as a sentence with its place, `davit lint` shows its parts. */

import type { Position } from "../../lib/text/position.ts";
import type { FindingCode } from "../../model/objects/findings.ts";
import type { SourceProblem } from "../../model/objects/source.ts";

export interface FileProblem extends SourceProblem {
  readonly code: FindingCode;
  /** The file's name in messages. */
  readonly file: string;
  /** Undefined for a problem of the whole file. */
  readonly at?: Position;
  /** The message without the place. */
  readonly text: string;
}

export function wholeProblem(file: string, code: FindingCode, message: string): FileProblem {
  return { origin: file, message, code, file, text: message };
}
