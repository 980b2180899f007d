/**
 * Reserves room on the disk by a file. When the disk is full, the log removes the file, so that it can still log
 * records that free room. It makes the file again as soon as there is room.
 *
 * The file's bytes are random: a file system that compresses, or omits zeros, would reserve no room for others.
 */

import { join } from "node:path";
import type { Files } from "../../lib/files.ts";
import { writeWholeFile } from "../../lib/whole-file.ts";

export interface ReserveOptions {
  readonly files: Files;
  readonly directory: string;
  readonly random: (bytes: number) => Uint8Array;
  /** 0 for none. */
  readonly bytes: number;
}

/** This name collides with no segment, snapshot or unfinished file. */
export const reserveName = "reserve";

// Random bytes in steps of a millisecond.
const pieceBytes = 256 * 1024;

export class Reserve {
  readonly #options: ReserveOptions;
  #isThere = false;

  constructor(options: ReserveOptions) {
    this.#options = options;
  }

  /** False before it is made and after it is removed. */
  get isThere(): boolean {
    return this.#options.bytes === 0 || this.#isThere;
  }

  /** Makes it, unless it is there. @throws {Error} of the disk, when it has no room or fails. */
  async make(): Promise<void> {
    if (this.isThere) return;
    const { files, directory } = this.#options;
    const isFound = (await files.list(directory)).includes(reserveName);
    if (!isFound) await writeWholeFile(files, directory, reserveName, this.#pieces());
    this.#isThere = true;
  }

  /** Frees its room. @returns true if it was there. */
  async giveUp(): Promise<boolean> {
    if (this.#options.bytes === 0 || !this.#isThere) return false;
    this.#isThere = false;
    const { files, directory } = this.#options;
    try {
      await files.remove(join(directory, reserveName));
      await files.syncDirectory(directory);
    } catch {
      // No room was freed: the next write gets the disk's error.
    }
    return true;
  }

  *#pieces(): Iterable<Uint8Array> {
    const { bytes, random } = this.#options;
    for (let at = 0; at < bytes; at += pieceBytes) yield random(Math.min(pieceBytes, bytes - at));
  }
}
