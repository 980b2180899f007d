/** Locks a data directory for one process. The kernel releases the lock when the process ends. */

import { type Stats, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { WalError } from "../core/log-port.ts";

/** A directory that only this process uses. */
export interface DirectoryLock {
  /**
   * False after the lock's file was removed or replaced: then another process can lock the directory, too. A call takes
   * some microseconds.
   */
  isHeld(): boolean;
  /** Idempotent. */
  release(): void;
}

/** Locks a directory for this process. @throws {WalError} locked, unusable. */
export type LockDirectory = (directory: string, options?: LockOptions) => DirectoryLock;

interface LockOptions {
  /** If false, a malformed lock file stays unchanged, and locking throws `unusable`. True unless given. */
  readonly mends?: boolean;
}

export const lockName = "lock.db";

// SQLITE_BUSY: another connection holds a lock. SQLITE_NOTADB: the file is no database. SQLite locks a file before it
// reads the file, so nobody else holds a lock on such a file.
const busyCode = 5;
const notDatabaseCode = 26;

/**
 * Locks a directory by an exclusive transaction on `lock.db`, an empty database. Node has no API for file locks. A file
 * with a process id proves nothing in containers, where ids repeat.
 *
 * If `lock.db` has other content, davit empties the file and does not remove it. If davit removed the file, two starts
 * could each make and lock a different one.
 */
export const lockDirectory: LockDirectory = (directory, { mends = true } = {}) => {
  const path = join(directory, lockName);
  let database: DatabaseSync;
  try {
    try {
      database = lockFile(path);
    } catch (error) {
      if (!mends || sqliteCodeOf(error) !== notDatabaseCode) throw error;
      truncateSync(path);
      database = lockFile(path);
    }
  } catch (error) {
    throw refusalOf(error, directory, path);
  }
  const file = fileAt(path);
  return {
    isHeld: () => {
      const found = fileAt(path);
      return found !== undefined && found.ino === file?.ino && found.dev === file.dev;
    },
    release: () => {
      if (database.isOpen) database.close();
    },
  };
};

function lockFile(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // A journal on disk would need room, but davit must be able to start on a full disk, too.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** The file at a path; undefined if there is none, or if the path cannot be read. */
function fileAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // If this process cannot read the path, another process would not find this lock.
    return undefined;
  }
}

function refusalOf(error: unknown, directory: string, path: string): WalError {
  if (sqliteCodeOf(error) !== busyCode) {
    return new WalError("unusable", `Locking "${path}": cannot be opened for writing`, { cause: error });
  }
  return new WalError(
    "locked",
    `Locking "${directory}": another davit uses it; stop that one, or give this one a directory of its own`,
    { cause: error },
  );
}

function sqliteCodeOf(error: unknown): unknown {
  return error instanceof Error && "errcode" in error ? error.errcode : undefined;
}
