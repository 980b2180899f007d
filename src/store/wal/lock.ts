/** One process for each data directory, by a lock that the kernel lets go of when its holder dies. */

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { WalError } from "../log-port.ts";

/** Takes a directory. @returns the way to give it back. @throws {WalError} locked, unusable. */
export type LockDirectory = (directory: string) => () => void;

// SQLITE_BUSY: another connection holds a lock.
const busyCode = 5;

/**
 * Locks by an exclusive transaction on `lock.db`, an empty database. Node has no file locks of its own, and a file with
 * a process id says nothing in containers, where ids repeat.
 */
export const lockDirectory: LockDirectory = (directory) => {
  const path = join(directory, "lock.db");
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: 0 });
    // A journal on disk would need room, and a full disk is no reason not to read what is there.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    database?.close();
    throw refusalOf(error, directory, path);
  }
  const held = database;
  return () => {
    if (held.isOpen) held.close();
  };
};

function refusalOf(error: unknown, directory: string, path: string): WalError {
  const isBusy = error instanceof Error && "errcode" in error && error.errcode === busyCode;
  if (!isBusy) return new WalError("unusable", `Locking "${path}": cannot be opened for writing`, { cause: error });
  return new WalError(
    "locked",
    `Locking "${directory}": another davit uses it; stop that one, or give this one a directory of its own`,
    { cause: error },
  );
}
