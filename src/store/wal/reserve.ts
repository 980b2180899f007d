/**
 * Reserves room on the disk by a file. When the disk is full, the log removes the file, and can then still log records
 * that free room. The log makes the file again as soon as the disk has room.
 *
 * The file has random bytes. A file system that compresses files or omits zeros would reserve no room for bytes that it
 * can shorten.
 */

import { join } from "node:path";
import type { Files } from "../../lib/files/files.ts";
import { writeWholeFile } from "../../lib/files/whole-file.ts";

interface ReserveOptions {
  readonly files: Files;
  readonly directory: string;
  readonly random: (bytes: number) => Uint8Array;
  /** 0 for none. */
  readonly bytes: number;
}

/** No segment, snapshot or unfinished file has this name. */
const reserveName = "reserve";

// Making this many random bytes takes a millisecond.
const pieceBytes = 256 * 1024;

export class Reserve {
  readonly #options: ReserveOptions;
  #isThere = false;

  constructor(options: ReserveOptions) {
    this.#options = options;
  }

  /** True while the file exists. Without a reserve it is always true. */
  get isThere(): boolean {
    return this.#options.bytes === 0 || this.#isThere;
  }

  /** Makes the file, unless it exists. @throws {Error} of the disk, when the disk has no room or fails. */
  async make(): Promise<void> {
    if (this.isThere) return;
    const { files, directory } = this.#options;
    const isFound = (await files.list(directory)).includes(reserveName);
    if (!isFound) await writeWholeFile(files, directory, reserveName, this.#pieces());
    this.#isThere = true;
  }

  /** Removes the file, to free its room. @returns false if there was none. */
  async giveUp(): Promise<boolean> {
    if (this.#options.bytes === 0 || !this.#isThere) return false;
    this.#isThere = false;
    const { files, directory } = this.#options;
    try {
      await files.remove(join(directory, reserveName));
      await files.syncDirectory(directory);
    } catch {
      // If no room was freed, the next write gets the disk's error.
    }
    return true;
  }

  *#pieces(): Iterable<Uint8Array> {
    const { bytes, random } = this.#options;
    for (let at = 0; at < bytes; at += pieceBytes) yield random(Math.min(pieceBytes, bytes - at));
  }
}
