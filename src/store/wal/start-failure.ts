/** Turns an error of the disk into one sentence for the operator, so that a failed start never shows a stack. */

import { codeOf, messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { WalError } from "../core/log-port.ts";

/** What the disk's error codes mean, and what to do. */
const sentences: Readonly<Record<string, string>> = {
  EROFS: "the file system is read-only; make it writable, or give another --data-dir",
  ENOSPC: "no space is left on the disk; make room, or give another --data-dir",
  EDQUOT: "the disk quota is used up; make room, or give another --data-dir",
  EACCES: "permission is denied; let the user that runs davit read and write it",
  EPERM: "permission is denied; let the user that runs davit read and write it",
  EIO: "the disk fails to read or write; see to it, then start again",
  ENOTDIR: "it is not a directory; give another --data-dir",
  EEXIST: "it is not a directory; give another --data-dir",
};

/**
 * The error to throw: a `WalError` for an error of the disk. Any other error stays unchanged, because it is a bug or a
 * `WalError` already.
 * @param doing begins the sentence, such as "Opening".
 */
export function startFailure(doing: string, path: string, error: unknown): unknown {
  const code = codeOf(error);
  // Codes of the system have no underscore. Codes of Node's own errors have one.
  if (error instanceof WalError || code === undefined || !/^E[A-Z\d]+$/.test(code)) return error;
  const sentence = sentences[code] ?? `the disk answers ${code}; see to it, then start again`;
  return new WalError("unusable", `${doing} "${path}": ${sentence}`, { cause: error });
}

/**
 * The error to throw when saving a snapshot or removing segments failed. Logs an error of the disk. Any other error
 * stays unchanged.
 */
export function snapshotFailure(log: Log, doing: string, error: unknown): unknown {
  if (error instanceof WalError || codeOf(error) === undefined) return error;
  log.error({ err: error }, "snapshot cannot be kept");
  return new WalError("appendFailed", `${doing}: ${messageOf(error)}`, { cause: error });
}
