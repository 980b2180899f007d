/**
 * The files port: the few file operations that durability depends on. Tests use another implementation,
 * `test/helpers/fault-files.ts`, in which any operation can fail or crash. Paths are absolute or relative to the
 * working directory.
 */

import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, readFile, rename, stat, unlink } from "node:fs/promises";
import { codeOf } from "../errors.ts";

/** An open file that grows at its end. */
export interface AppendFile {
  /** Writes all bytes at the end. If it rejects, the file may have none of them, or only a first part. */
  append(bytes: Uint8Array): Promise<void>;
  /** Resolves when the file's bytes and its length are on disk (fdatasync). */
  sync(): Promise<void>;
  /** Cuts the file to `size` bytes. */
  truncate(size: number): Promise<void>;
  close(): Promise<void>;
}

export interface Files {
  /** Creates a directory and its parents with mode 0700. It does not change an existing directory. */
  makeDirectory(path: string): Promise<void>;
  /** Returns the names in a directory, sorted; none if the directory does not exist. */
  list(path: string): Promise<readonly string[]>;
  read(path: string): Promise<Buffer>;
  /** Returns the size of a file in bytes. */
  sizeOf(path: string): Promise<number>;
  /** Returns the content in pieces of at most 256 KiB, for files that may not fit into memory. */
  readPieces(path: string): AsyncIterable<Buffer>;
  /** Opens a file to append to it. Creates a missing file with mode 0600. */
  openAppend(path: string): Promise<AppendFile>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Resolves when a directory's entries (creations, renames, removals) are on disk. */
  syncDirectory(path: string): Promise<void>;
}

// Small enough that the work on one piece does not delay other requests.
const pieceBytes = 256 * 1024;

/** The disk of the computer. */
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
  sizeOf: async (path) => (await stat(path)).size,
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

/** Takes the error of a file operation. @throws the error, unless the file is missing. */
export function ignoreMissing(error: unknown): void {
  if (codeOf(error) !== "ENOENT") throw error;
}
