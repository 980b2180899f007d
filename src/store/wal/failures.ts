/**
 * What a failure of the disk means: for the status of the log, and in one sentence for the operator, so that a failed
 * start never shows a stack.
 */

import { codeOf, messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { type LogStatus, WalError } from "../core/log-port.ts";
import { lockName } from "./lock.ts";
import type { SegmentWriter } from "./segment-writer.ts";

const refusals: Readonly<Record<Exclude<LogStatus, "writable">, readonly [WalError["reason"], string]>> = {
  full: ["noSpace", "no space left on the disk; make room, or delete keys. davit tries again every second"],
  readOnly: ["readOnly", "the disk fails; see to it. davit tries again every second"],
  lost: ["locked", `"${lockName}" was removed or replaced, so another davit may use the directory; restart this one`],
  closed: ["closed", "it is closed"],
};

export function refusalOf(status: Exclude<LogStatus, "writable">): WalError {
  const [reason, text] = refusals[status];
  return new WalError(reason, `Writing the log: ${text}`);
}

const troubles: Readonly<Record<LogStatus, string | undefined>> = {
  writable: undefined,
  full:
    "no space is left on its disk: clients' writes are refused, and Profiles, Groups and holds take effect only " +
    "while its reserve lasts: make room",
  readOnly: "its disk fails, so changes take no effect: see to the disk",
  lost: "its lock.db was removed or replaced, so changes take no effect: stop other davits there, restart this",
  closed: "it is closed",
};

/** Returns the value of `LogPort.trouble` for a status. */
export function troubleOf(status: LogStatus): string | undefined {
  return troubles[status];
}

/** Returns the status that the log has after a failed batch. */
export function statusAfter(
  { reason }: WalError,
  { isBroken }: Pick<SegmentWriter, "isBroken">,
): "full" | "readOnly" | "lost" {
  if (reason === "locked") return "lost";
  return reason === "noSpace" && !isBroken ? "full" : "readOnly";
}

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
