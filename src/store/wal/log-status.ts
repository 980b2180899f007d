/** The status of a log that cannot be written, and how it refuses proposals. */

import { type LogStatus, WalError } from "../core/log-port.ts";
import { lockName } from "./lock.ts";
import type { SegmentWriter } from "./segment-writer.ts";

const refusals: Readonly<Record<Exclude<LogStatus, "writable">, readonly [WalError["reason"], string]>> = {
  full: ["noSpace", "no space left on the disk; make room, or delete keys. davit tries again every second"],
  readOnly: ["readOnly", "the disk fails; see to it. davit tries again every second"],
  lost: ["locked", `"${lockName}" was removed or replaced, so another davit may use the directory; restart this one`],
  closed: ["closed", "it is closed"],
};

/** The error for a proposal that the log refuses in a status. */
export function refusalOf(status: Exclude<LogStatus, "writable">): WalError {
  const [reason, text] = refusals[status];
  return new WalError(reason, `Writing the log: ${text}`);
}

/** The status of the log after a failed batch. */
export function statusAfter(
  { reason }: WalError,
  { isBroken }: Pick<SegmentWriter, "isBroken">,
): "full" | "readOnly" | "lost" {
  if (reason === "locked") return "lost";
  return reason === "noSpace" && !isBroken ? "full" : "readOnly";
}
