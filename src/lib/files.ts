/**
 * The files port: the few operations on which durability rests, so that a test can make any of them fail or crash.
 * `test/helpers/fault-files.ts` is the other implementation. Paths are absolute or relative to the working directory.
 */

import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, readFile, rename, unlink } from "node:fs/promises";

/** An open file that grows at its end. */
export interface AppendFile {
  /** Writes all bytes at the end. After a rejection any prefix of them may be in the file. */
  append(bytes: Uint8Array): Promise<void>;
  /** Returns once the file's bytes and its length are on disk (fdatasync). */
  sync(): Promise<void>;
  /** Cuts the file to `size` bytes. */
  truncate(size: number): Promise<void>;
  close(): Promise<void>;
}

export interface Files {
  /** Creates a directory and its parents with mode 0700; an existing one is left as it is. */
  makeDirectory(path: string): Promise<void>;
  /** Names in a directory, sorted; empty when the directory does not exist. */
  list(path: string): Promise<readonly string[]>;
  read(path: string): Promise<Buffer>;
  /** The content in pieces of at most 256 KiB, for files that need not fit into memory. */
  readPieces(path: string): AsyncIterable<Buffer>;
  /** Opens for appending; creates the file with mode 0600 when it is missing. */
  openAppend(path: string): Promise<AppendFile>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Returns once a directory's entries (creations, renames, removals) are on disk. */
  syncDirectory(path: string): Promise<void>;
}

// Small enough that processing one piece delays nobody.
const pieceBytes = 256 * 1024;

/** The machine's own disk. */
export const diskFiles: Files = {
  makeDirectory: async (path) => {
    await mkdir(path, { recursive: true, mode: 0o700 });
  },
  list: async (path) => {
    try {
      return (await readdir(path)).toSorted();
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
      throw error;
    }
  },
  read: (path) => readFile(path),
  readPieces: async function* (path) {
    const handle = await open(path, constants.O_RDONLY);
    try {
      for (;;) {
        const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(pieceBytes), 0, pieceBytes);
        if (bytesRead === 0) return;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await handle.close();
    }
  },
  openAppend: async (path) => {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND;
    return appendFile(await open(path, flags, 0o600));
  },
  rename: (from, to) => rename(from, to),
  remove: (path) => unlink(path),
  syncDirectory: async (path) => {
    const handle = await open(path, constants.O_RDONLY);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  },
};

function appendFile(handle: FileHandle): AppendFile {
  return {
    append: async (bytes) => {
      let at = 0;
      while (at < bytes.length) at += (await handle.write(bytes, at)).bytesWritten;
    },
    sync: () => handle.datasync(),
    truncate: (size) => handle.truncate(size),
    close: () => handle.close(),
  };
}
