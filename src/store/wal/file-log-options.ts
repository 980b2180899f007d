/** The options of a log in files. */

import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { BeginLogOptions } from "./begin-log.ts";
import type { LockDirectory } from "./lock.ts";

export interface FileLogOptions extends BeginLogOptions {
  readonly lock: LockDirectory;
  readonly clock: Clock;
  readonly log: Log;
  /** Called after each batch with the time that its write and sync took. */
  readonly observeSyncSeconds?: (seconds: number) => void;
  readonly maxSegmentBytes?: number;
  /**
   * The most bytes that wait for the disk. Beyond it, the log refuses proposals, because the disk is slower than the
   * clients.
   */
  readonly maxWaitingBytes?: number;
  /** How much room the log reserves for a full disk; none unless given. */
  readonly reserveBytes?: number;
  /**
   * How often the log checks that this process still holds the lock, besides the checks at each write; never unless
   * given.
   */
  readonly lockCheckMs?: number;
}
