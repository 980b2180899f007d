/** One process for each data directory, by a lock that the kernel releases when its holder dies. */

import { type Stats, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { WalError } from "../core/log-port.ts";

/** A directory that only this process uses. */
export interface DirectoryLock {
  /**
   * False once the lock's file was removed or replaced: then another process can lock the directory, too. Costs some
   * microseconds.
   */
  isHeld(): boolean;
  /** Idempotent. */
  release(): void;
}

/** Takes a directory. @throws {WalError} locked, unusable. */
export type LockDirectory = (directory: string, options?: LockOptions) => DirectoryLock;

export interface LockOptions {
  /** False leaves a malformed lock file unchanged, and throws `unusable`; true unless given. */
  readonly mends?: boolean;
}

export const lockName = "lock.db";

// SQLITE_BUSY: another connection holds a lock. SQLITE_NOTADB: the file is no database, and nobody holds a lock on it,
// since SQLite takes a lock before it reads.
const busyCode = 5;
const notDatabaseCode = 26;

/**
 * Locks by an exclusive transaction on `lock.db`, an empty database. Node has no file locks of its own, and a file with
 * a process id proves nothing in containers, where ids repeat. If `lock.db` has other content, davit empties the file
 * instead of removing it: two starts that removed it would each lock a file of their own.
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
    // A journal on disk would need room, and reading must work on a full disk.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Undefined when there is no file. */
function fileAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // If the path cannot be read, another process would not find this lock.
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
