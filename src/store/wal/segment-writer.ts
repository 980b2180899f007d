/**
 * Writes batches at the end of the log: one write and one fdatasync each. A write that fails is cut off again and may
 * be tried anew. A sync that fails ends all writing: the page cache may have dropped what the disk never got, so that a
 * second sync would succeed and mean nothing.
 */

import { join } from "node:path";
import { assert, codeOf, messageOf } from "../../lib/errors.ts";
import type { AppendFile, Files } from "../../lib/files.ts";
import { inSlices } from "../../lib/slices.ts";
import { writeWholeFile } from "../../lib/whole-file.ts";
import { WalError } from "../log-port.ts";
import { type BatchPosition, encodeBatch, encodeSegmentHead, type LogRecord, type SegmentHead } from "./record.ts";
import { type LogEnd, segmentNameOf } from "./recover.ts";

export interface SegmentWriterOptions {
  readonly directory: string;
  readonly files: Files;
  /** A random 64-bit number that is not 0. */
  readonly randomId: () => bigint;
  /** A segment of this size is the last one's end: the next batch begins another. */
  readonly maxSegmentBytes: number;
  /** Term of this start; later segments carry it. */
  readonly term: number;
}

export class SegmentWriter {
  readonly #options: SegmentWriterOptions;
  #file: AppendFile;
  #head: SegmentHead;
  #size: number;
  #next: { readonly batch: number; readonly sequence: number };
  #isBroken = false;

  private constructor(options: SegmentWriterOptions, file: AppendFile, end: LogEnd) {
    this.#options = options;
    this.#file = file;
    this.#head = end.head;
    this.#size = end.size;
    this.#next = { batch: end.lastBatch + 1, sequence: end.lastSequence + 1 };
  }

  /**
   * Goes on where a log ends, after cutting a torn write. What was read is on disk when this resolves: it may have come
   * from the page cache only.
   */
  static async resume(options: SegmentWriterOptions, end: LogEnd): Promise<SegmentWriter> {
    const file = await options.files.openAppend(join(options.directory, end.segment));
    try {
      if (end.tornBytes > 0) await file.truncate(end.size);
      await file.sync();
      await options.files.syncDirectory(options.directory);
    } catch (error) {
      await file.close();
      throw error;
    }
    return new SegmentWriter(options, file, end);
  }

  /** True after a failure that only a restart can clear up. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /**
   * Brings records to disk as one batch.
   * @returns the sequence of the first.
   * @throws {WalError} noSpace, appendFailed: nothing of it remains. readOnly: it may be found by a restart.
   */
  async append(records: readonly LogRecord[]): Promise<number> {
    assert(!this.#isBroken, "Nothing is written after a failed sync");
    if (this.#size >= this.#options.maxSegmentBytes) await this.#beginSegment();
    const { batch, sequence } = this.#next;
    const position: BatchPosition = { segmentId: this.#head.segmentId, batch, firstSequence: sequence };
    const encoded = inSlices(encodeBatch(position, records));
    // Most are small, and begin their way to the disk at once: others wait for it to be taken up again.
    const bytes = encoded instanceof Promise ? await encoded : encoded;
    await this.#write(bytes);
    await this.#sync();
    this.#size += bytes.length;
    this.#next = { batch: batch + 1, sequence: sequence + records.length };
    return sequence;
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #write(bytes: Uint8Array): Promise<void> {
    try {
      await this.#file.append(bytes);
    } catch (error) {
      await this.#takeBack();
      throw writeFailure(error);
    }
  }

  async #sync(): Promise<void> {
    try {
      await this.#file.sync();
    } catch (error) {
      this.#isBroken = true;
      // Without this a restart might read the batch back from the page cache and build on it. If it fails, too, the
      // batch is at worst found there: nobody was told that it is not.
      await this.#file.truncate(this.#size).catch(() => undefined);
      throw new WalError(
        "readOnly",
        `Syncing the log: ${messageOf(error)}; restart davit when the disk is well again`,
        {
          cause: error,
        },
      );
    }
  }

  /** Cuts a part of a batch off, durably: what is answered as failed must not come back after a crash. */
  async #takeBack(): Promise<void> {
    try {
      await this.#file.truncate(this.#size);
      await this.#file.sync();
    } catch {
      // The caller reports the write that failed first; nothing can be written behind what remains of it.
      this.#isBroken = true;
    }
  }

  async #beginSegment(): Promise<void> {
    const { batch, sequence } = this.#next;
    const { randomId, term } = this.#options;
    const head = { ...this.#head, segmentId: randomId(), term, firstBatch: batch, firstSequence: sequence };
    try {
      const name = await createSegment(this.#options, head);
      const file = await this.#options.files.openAppend(join(this.#options.directory, name));
      const full = this.#file;
      this.#file = file;
      this.#head = head;
      this.#size = encodeSegmentHead(head).length;
      await full.close();
    } catch (error) {
      throw writeFailure(error);
    }
  }
}

/** Makes a segment without batches. @returns its name. */
export async function createSegment(
  { files, directory }: Pick<SegmentWriterOptions, "files" | "directory">,
  head: SegmentHead,
): Promise<string> {
  const name = segmentNameOf(head.firstSequence);
  await writeWholeFile(files, directory, name, [encodeSegmentHead(head)]);
  return name;
}

function writeFailure(error: unknown): WalError {
  const code = codeOf(error);
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new WalError("noSpace", "Writing the log: no space left on the disk", { cause: error });
  }
  return new WalError("appendFailed", `Writing the log: ${messageOf(error)}`, { cause: error });
}
