/** Stores and logs on a disk in memory, with everything else that they need. */

import type { Log } from "../../src/lib/log.ts";
import { Store } from "../../src/store/store.ts";
import { FileLog, type FileLogOptions } from "../../src/store/wal/wal.ts";
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
    lock: () => () => {},
    clock: new FakeClock(),
    random: (bytes) => Uint8Array.from({ length: bytes }, () => pick(256)),
    log: silentLog,
    ...options,
  });
}

export async function openStore(files = memoryFiles(), options: Partial<FileLogOptions> = {}): Promise<Store> {
  const log = await openLog(files, options);
  return Store.open({ log, clock: options.clock ?? new FakeClock() });
}
