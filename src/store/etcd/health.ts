/** What a failure of etcd means for the log, in sentences for clients and operators. */

import type { EtcdError, EtcdFailure } from "../../../packages/etcd-client/src/etcd-client.ts";
import type { Log } from "../../lib/log.ts";
import { type LogStatus, WalError, type WalFailure } from "../core/log-port.ts";

const reasons: Readonly<Record<EtcdFailure, WalFailure>> = {
  unavailable: "readOnly",
  noSpace: "noSpace",
  denied: "unusable",
  compacted: "damaged",
  tooLarge: "unusable",
  leaseNotFound: "readOnly",
  other: "unusable",
};

/** The error for the state machine. @param doing such as "Writing the log". */
export function etcdFailure(doing: string, error: EtcdError): WalError {
  const outcome = error.mayBeDone ? "; the write may be there" : "";
  return new WalError(reasons[error.reason], `${doing}: ${error.message}${outcome}`, { cause: error });
}

/** The error of a member that has applied more than etcd has. */
export function wentBack(): WalError {
  const advice = "etcd was restored or emptied: restart all members, see docs/operate/several-members.md";
  return new WalError("damaged", `Reading the log in etcd: it lacks what this member has applied; ${advice}`);
}

/** See `LogPort.trouble`. */
function troubleOf(error: EtcdError): string {
  if (error.reason === "noSpace") {
    return "etcd has reached its quota, so changes take no effect: defragment it, and raise --quota-backend-bytes";
  }
  return `${error.message}, so changes take no effect: see to etcd`;
}

/**
 * Whether the log in etcd can be written, as far as the last writes show. All writes count, also those outside the log:
 * a member that writes no record learns this from its heartbeats.
 */
export class LogHealth {
  readonly #log: Log;
  #status: LogStatus = "closed";
  #trouble: string | undefined = "it is closed";
  /** True once the log is lost or stopped: davit never writes it again. */
  #isOver = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** See `LogPort`. */
  get status(): LogStatus {
    return this.#status;
  }

  /** See `LogPort`. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Call it once the log is read. */
  opened(): void {
    this.#set("writable", undefined);
  }

  /** Takes the result of a write. */
  wrote(error: EtcdError | undefined): void {
    const status = error === undefined ? "writable" : error.reason === "noSpace" ? "full" : "readOnly";
    if (this.#isOver || this.#status === status || this.#status === "closed") return;
    if (error === undefined) this.#log.info({}, "log can be written again");
    else this.#log.error({ err: error, reason: error.reason }, "log cannot be written");
    this.#set(status, error === undefined ? undefined : troubleOf(error));
  }

  /** Call it when etcd has another log than this member. @param trouble why. */
  lost(trouble: string): void {
    this.#set("lost", trouble);
    this.#isOver = true;
  }

  closed(): void {
    this.#isOver = true;
    this.#status = "closed";
    this.#trouble = "it is closed";
  }

  #set(status: LogStatus, trouble: string | undefined): void {
    if (this.#isOver) return;
    this.#status = status;
    this.#trouble = trouble;
  }
}
