/** The options of a log in files. */

import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { BeginLogOptions } from "./begin-log.ts";
import type { LockDirectory } from "./lock.ts";

export interface FileLogOptions extends BeginLogOptions {
  readonly lock: LockDirectory;
  readonly clock: Clock;
  readonly log: Log;
  /** Called with the time that the write and sync of each batch took. */
  readonly observeSyncSeconds?: (seconds: number) => void;
  readonly maxSegmentBytes?: number;
  /** Beyond this, proposals are refused while others wait: the disk is then slower than the clients. */
  readonly maxWaitingBytes?: number;
  /** Room that is reserved for a full disk; none unless given. */
  readonly reserveBytes?: number;
  /** How often to check that the directory is still ours while there are no writes; never unless given. */
  readonly lockCheckMs?: number;
}
