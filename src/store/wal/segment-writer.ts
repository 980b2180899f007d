/**
 * Writes batches at the end of the log: one write and one fdatasync for each. After a failed write it cuts off the
 * partial batch, and a retry is possible.
 *
 * After a failed sync it writes no more batches into the file. The page cache may have dropped bytes that never reached
 * the disk, so neither a successful second sync nor a read proves anything. The batch is still in memory, so it goes
 * into a new segment. The new segment's head says that the old segment ends before this batch. If the new segment
 * fails, too, the batch is given up. Then `repair` makes a segment with such a head.
 */

import { join } from "node:path";
import { assert, codeOf, messageOf } from "../../lib/errors.ts";
import type { AppendFile, Files } from "../../lib/files/files.ts";
import { writeWholeFile } from "../../lib/files/whole-file.ts";
import { inSlices } from "../../lib/slices.ts";
import { WalError } from "../core/log-port.ts";
import {
  type BatchPosition,
  encodeBatch,
  encodeSegmentHead,
  formatVersion,
  type LogRecord,
  type SegmentHead,
  segmentHeadBytes,
} from "./record.ts";
import { type LogEnd, segmentNameOf } from "./recover.ts";

interface SegmentWriterOptions {
  readonly directory: string;
  readonly files: Files;
  /** Returns a random 64-bit number that is not 0. */
  readonly randomId: () => bigint;
  /** A segment of this size gets no more batches: the next batch begins another segment. */
  readonly maxSegmentBytes: number;
  /** The term of this start, for the heads of new segments. */
  readonly term: number;
  /** Called right after a failed sync. */
  readonly onSyncFailure: (error: unknown) => void;
}

export class SegmentWriter {
  readonly #options: SegmentWriterOptions;
  #file: AppendFile;
  #head: SegmentHead;
  #size: number;
  #next: { readonly batch: number; readonly sequence: number };
  #isBroken = false;
  #isFull = false;

  private constructor(options: SegmentWriterOptions, file: AppendFile, end: LogEnd) {
    this.#options = options;
    this.#file = file;
    this.#head = end.head;
    this.#size = end.size;
    this.#next = { batch: end.lastBatch + 1, sequence: end.lastSequence + 1 };
    // A segment of an earlier format gets no more batches. The next segment has the present format. An older davit
    // refuses the next segment, and so the whole log.
    this.#isFull = end.version !== formatVersion;
  }

  /**
   * Continues at the end of a log, and cuts off a torn write. It syncs the segment before any new write, because the
   * bytes that a start has read may be only in the page cache.
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

  /** True after a failure that left the segment's end uncertain. Then call `repair` before the next batch. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Name of the segment that is being written. */
  get segment(): string {
    return segmentNameOf(this.#head.firstSequence);
  }

  /**
   * Makes the next batch begin a new segment, however short the present one is. Then the present one can be removed.
   */
  endSegment(): void {
    this.#isFull = true;
  }

  /**
   * Writes records to disk as one batch.
   * @returns the sequence of the first record.
   * @throws {WalError} noSpace, appendFailed: nothing of the batch remains. readOnly: a restart may find the batch,
   * unless `repair` succeeds before that.
   */
  async append(records: readonly LogRecord[]): Promise<number> {
    assert(!this.#isBroken, "What a sync may have lost is nothing to write behind");
    if (this.#isFull || this.#size >= this.#options.maxSegmentBytes) await this.#beginSegment();
    const { batch, sequence } = this.#next;
    const encoded = inSlices(encodeBatch(this.#position(this.#head.segmentId), records));
    // Most batches are small and already encoded here. An await would delay their write.
    const bytes = encoded instanceof Promise ? await encoded : encoded;
    await this.#write(bytes);
    try {
      await this.#file.sync();
      this.#size += bytes.length;
    } catch (error) {
      this.#options.onSyncFailure(error);
      await this.#breakOff();
      await this.#writeAnew(records, error);
    }
    this.#next = { batch: batch + 1, sequence: sequence + records.length };
    return sequence;
  }

  /**
   * Begins a new segment after the last confirmed batch, if the end of the present one is uncertain.
   * @throws {WalError} noSpace, appendFailed: the end is still uncertain.
   */
  async repair(): Promise<void> {
    if (this.#isBroken) await this.#beginSegment();
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  #position(segmentId: bigint): BatchPosition {
    return { segmentId, batch: this.#next.batch, firstSequence: this.#next.sequence };
  }

  async #write(bytes: Uint8Array): Promise<void> {
    try {
      await this.#file.append(bytes);
    } catch (error) {
      await this.#takeBack();
      throw writeFailure(error);
    }
  }

  /**
   * Cuts off the batch whose sync failed. Otherwise a start before the repair could read the batch from the page cache
   * and write after it. If the cut fails, too, such a start may find the batch. This is allowed, because no client got
   * the answer that the batch is absent.
   */
  async #breakOff(): Promise<void> {
    this.#isBroken = true;
    await this.#file.truncate(this.#size).catch(() => undefined);
  }

  /** Writes a batch from memory into a new segment after its sync failed. @throws {WalError} readOnly. */
  async #writeAnew(records: readonly LogRecord[], syncFailure: unknown): Promise<void> {
    try {
      await this.#beginSegment(records);
    } catch (error) {
      const what = messageOf(syncFailure);
      throw new WalError("readOnly", `Syncing the log: ${what}; davit tries again every second`, { cause: error });
    }
  }

  /** Cuts off a partial batch, durably: a write that was answered as failed must not reappear after a crash. */
  async #takeBack(): Promise<void> {
    try {
      await this.#file.truncate(this.#size);
      await this.#file.sync();
    } catch {
      // The caller reports the failed write. No batch may follow the partial one.
      this.#isBroken = true;
    }
  }

  /**
   * Makes the next segment and continues in it. It writes the segment to disk as a whole, including the batch of
   * `records`, if there are any.
   */
  async #beginSegment(records: readonly LogRecord[] = []): Promise<void> {
    const { batch, sequence } = this.#next;
    const { randomId, term, files, directory } = this.#options;
    const segmentId = randomId();
    // If the present segment has no batch, the new one has the same name and replaces it. Then the new head must repeat
    // what the present head says about the segment before.
    const endsPrevious = this.#isBroken || (this.#head.endsPrevious && this.#head.firstSequence === sequence);
    const head = { ...this.#head, segmentId, term, firstBatch: batch, firstSequence: sequence, endsPrevious };
    try {
      const first = records.length === 0 ? [] : [await inSlices(encodeBatch(this.#position(segmentId), records))];
      const name = await createSegment(this.#options, head, first);
      const file = await files.openAppend(join(directory, name));
      const last = this.#file;
      this.#file = file;
      this.#head = head;
      this.#size = first.reduce((sum, bytes) => sum + bytes.length, segmentHeadBytes);
      this.#isBroken = false;
      this.#isFull = false;
      // The old segment's content was synced, or is given up.
      await last.close().catch(() => undefined);
    } catch (error) {
      throw writeFailure(error);
    }
  }
}

/** Makes a segment with the given batches. @returns its name. */
export async function createSegment(
  { files, directory }: Pick<SegmentWriterOptions, "files" | "directory">,
  head: SegmentHead,
  batches: readonly Uint8Array[] = [],
): Promise<string> {
  const name = segmentNameOf(head.firstSequence);
  await writeWholeFile(files, directory, name, [encodeSegmentHead(head), ...batches]);
  return name;
}

function writeFailure(error: unknown): WalError {
  if (isNoSpace(error)) {
    return new WalError("noSpace", "Writing the log: no space left on the disk", { cause: error });
  }
  return new WalError("appendFailed", `Writing the log: ${messageOf(error)}`, { cause: error });
}

/** True if more room on the disk would help. It also checks the cause of a `WalError`. */
export function isNoSpace(error: unknown): boolean {
  if (error instanceof WalError && error.cause !== undefined) return isNoSpace(error.cause);
  const code = codeOf(error);
  return code === "ENOSPC" || code === "EDQUOT";
}
