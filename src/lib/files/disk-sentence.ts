/** Explains a disk error to a person, in place of the system's own message. */

import { codeOf } from "../errors.ts";
import { StartError } from "../start-error.ts";

const sentences: Readonly<Record<string, string>> = {
  EROFS: "the file system is read-only",
  ENOSPC: "no space is left on the disk",
  EDQUOT: "the disk quota is used up",
  EACCES: "permission is denied",
  EPERM: "permission is denied",
  EIO: "the disk fails to read or write",
  ENOENT: "there is no such file or directory",
  ENOTDIR: "a part of its path is a file",
  EISDIR: "a directory has its name",
  ENAMETOOLONG: "the name is too long",
};

/** Returns a part of a sentence, such as "no space is left on the disk"; undefined if this is no system error. */
export function diskSentence(error: unknown): string | undefined {
  const code = codeOf(error);
  if (code === undefined || !/^E[A-Z\d]+$/.test(code)) return undefined;
  return sentences[code] ?? `the disk answers ${code}`;
}

const readCures: Readonly<Record<string, string>> = {
  EACCES: "let the user that runs davit read it",
  EPERM: "let the user that runs davit read it",
  ENOENT: "create it, or correct the path",
};

/** Like `diskSentence`, for a file that davit only reads: with what to do, if the disk itself does not fail. */
export function readSentence(error: unknown): string | undefined {
  const sentence = diskSentence(error);
  const cure = readCures[codeOf(error) ?? ""];
  return sentence === undefined || cure === undefined ? sentence : `${sentence}: ${cure}`;
}

/** Returns a StartError with a sentence for a disk error; any other error unchanged. @param doing such as "Writing". */
export function diskFailure(doing: string, path: string, error: unknown): unknown {
  const sentence = diskSentence(error);
  return sentence === undefined ? error : new StartError(`${doing} "${path}": ${sentence}`, { cause: error });
}
