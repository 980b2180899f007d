/** Maps a failed batch to a `LogStatus`, and a `LogStatus` to an error and to a text for operators. */

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
