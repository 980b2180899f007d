/** Messages for a person when a command fails. */

import { FileError } from "../../lib/files/watched-files.ts";
import { StartError } from "../../lib/start-error.ts";
import { WalError } from "../../store/core/log-port.ts";

/** Returns the message for a person; undefined for an error that is a bug in davit. */
export function sentenceOf(error: unknown): string | undefined {
  const isOurs = error instanceof WalError || error instanceof StartError || error instanceof FileError;
  return isOurs ? error.message : undefined;
}
