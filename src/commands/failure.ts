/** What the person at a command reads when it could not do its work. */

import { codeOf } from "../lib/errors.ts";
import { StartError } from "../lib/start-error.ts";
import { FileProblem } from "../lib/watched-files.ts";
import { WalError } from "../store/log-port.ts";

/** One sentence; undefined for a bug. */
export function sentenceOf(error: unknown): string | undefined {
  const isOurs = error instanceof WalError || error instanceof StartError || error instanceof FileProblem;
  return isOurs ? error.message : undefined;
}

const diskSentences: Readonly<Record<string, string>> = {
  EROFS: "the file system is read-only",
  ENOSPC: "no space is left on the disk",
  EDQUOT: "the disk quota is used up",
  EACCES: "permission is denied",
  EPERM: "permission is denied",
  EIO: "the disk fails to read or write",
  ENOENT: "there is no such file or directory",
  ENAMETOOLONG: "the name is too long",
};

/** The error to throw for one of the disk; anything else as it is. @param doing such as "Writing". */
export function diskFailure(doing: string, path: string, error: unknown): unknown {
  const code = codeOf(error);
  if (sentenceOf(error) !== undefined || code === undefined || !/^E[A-Z\d]+$/.test(code)) return error;
  const sentence = diskSentences[code] ?? `the disk answers ${code}`;
  return new StartError(`${doing} "${path}": ${sentence}`, { cause: error });
}
