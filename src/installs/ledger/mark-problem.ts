/** Why the mark of the ledger could not be read or written. */

import { messageOf } from "../../lib/errors.ts";
import { diskSentence } from "../../lib/files/disk-sentence.ts";

export interface MarkProblem {
  /** One sentence for people, without the full stop. */
  readonly text: string;
  /** True if a retry cannot help until a person changes something, such as davit's Role. */
  readonly isLasting: boolean;
}

/** @param what what failed: `its mark cannot be written`. @param error what `LedgerMark` has thrown. */
export function markProblem(what: string, error: unknown): MarkProblem {
  const isLasting = error instanceof Error && "isTransient" in error && error.isTransient === false;
  return { text: `${what}: ${diskSentence(error) ?? messageOf(error)}`, isLasting };
}
