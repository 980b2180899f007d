/**
 * Whether the log in etcd can be written, as far as the last writes show. All writes count, also those outside the log:
 * a member that writes no record learns this from its heartbeats.
 */

import type { Log } from "../../lib/log.ts";
import type { LogStatus } from "../core/log-port.ts";
import type { EtcdError } from "./client/etcd-error.ts";
import { troubleOf } from "./etcd-failure.ts";

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
