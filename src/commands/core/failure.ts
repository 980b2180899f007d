/** Messages for a person when a command fails. */

import { diskSentence } from "../../lib/files/disk-sentence.ts";
import { FileError } from "../../lib/files/watched-files.ts";
import { StartError } from "../../lib/start-error.ts";
import { WalError } from "../../store/core/log-port.ts";

/** Returns the message for a person; undefined for an error that is a bug in davit. */
export function sentenceOf(error: unknown): string | undefined {
  const isOurs = error instanceof WalError || error instanceof StartError || error instanceof FileError;
  return isOurs ? error.message : undefined;
}

/** Returns a StartError with a sentence for a disk error; any other error unchanged. @param doing such as "Writing". */
export function diskFailure(doing: string, path: string, error: unknown): unknown {
  const sentence = sentenceOf(error) === undefined ? diskSentence(error) : undefined;
  return sentence === undefined ? error : new StartError(`${doing} "${path}": ${sentence}`, { cause: error });
}
