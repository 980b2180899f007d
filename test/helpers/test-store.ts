/** Stores and logs on a disk in memory, with everything else that they need. */

import type { Log } from "../../src/lib/log.ts";
import { Store, type StoreOptions } from "../../src/store/store.ts";
import type { FileLogOptions } from "../../src/store/wal/begin-log.ts";
import { FileLog } from "../../src/store/wal/wal.ts";
import { FakeClock } from "./fake-clock.ts";
import { FaultFiles, seededPick } from "./fault-files.ts";

export const dataDirectory = "/data";

/** A log that says nothing. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silentLog };

export function memoryFiles(): FaultFiles {
  return new FaultFiles(seededPick(1));
}

export function openLog(files: FaultFiles, options: Partial<FileLogOptions> = {}): Promise<FileLog> {
  const pick = seededPick(7);
  return FileLog.open({
    directory: dataDirectory,
    files,
    lock: () => ({ isHeld: () => true, release: () => {} }),
    clock: new FakeClock(),
    random: (bytes) => Uint8Array.from({ length: bytes }, () => pick(256)),
    log: silentLog,
    ...options,
  });
}

/** `options` are of the log and of the store. */
export async function openStore(
  files = memoryFiles(),
  {
    clock = new FakeClock(),
    quotaBytes,
    maxWatchers,
    snapshotInterval,
    agelessRoot,
    ...options
  }: Partial<FileLogOptions & StoreOptions> = {},
): Promise<Store> {
  const log = await openLog(files, { clock, ...options, log: silentLog });
  return Store.open({ log, clock, quotaBytes, maxWatchers, snapshotInterval, agelessRoot });
}
