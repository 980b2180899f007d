/**
 * The log in files: one writer, one directory.
 *
 * It promises that a proposal is answered only after its record is on disk, that a crash leaves every answered record
 * and at most some of the unanswered ones, in order, and that damage is never taken for an end. Proposals that come
 * while the disk is busy are written together: one write and one fdatasync for all that wait.
 *
 * It never looks into a command, and never repairs what it cannot explain: `recover.ts` says what a crash may leave,
 * `record.ts` has the format.
 */

import { resolve } from "node:path";
import type { Clock } from "../../lib/clock.ts";
import { assert, codeOf, messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { removeUnfinishedFiles } from "../../lib/whole-file.ts";
import {
  type CommittedListener,
  type LogIdentity,
  type LogPort,
  type LogStatus,
  type Snapshot,
  WalError,
} from "../log-port.ts";
import { type BeginLogOptions, beginLog, randomId } from "./begin-log.ts";
import type { LockDirectory } from "./lock.ts";
import { type LogRecord, segmentHeadBytes } from "./record.ts";
import { checkGoesOnFrom, firstSequenceOf, type LogEnd, listSegments, recover } from "./recover.ts";
import { SegmentWriter } from "./segment-writer.ts";
import { SnapshotFiles, type StoredSnapshot } from "./snapshots.ts";
import { startFailure } from "./start-failure.ts";

export interface FileLogOptions extends BeginLogOptions {
  readonly lock: LockDirectory;
  readonly clock: Clock;
  readonly log: Log;
  /** Is told how long the write and sync of each batch took. */
  readonly observeSyncSeconds?: (seconds: number) => void;
  readonly maxSegmentBytes?: number;
  /** Proposals beyond this are refused while others wait: then the disk is slower than the clients. */
  readonly maxWaitingBytes?: number;
}

// A segment is read into memory as a whole at the start, and released as a whole.
const presetSegmentBytes = 64 * 1024 * 1024;
// What one write takes at most, unless a single proposal is larger: more would only delay the first of them.
const maxBatchBytes = 8 * 1024 * 1024;
// A first sync of 10,000 objects is one proposal of some 50 MiB, and clients go on writing beside it.
const presetWaitingBytes = 256 * 1024 * 1024;

// The first start of a log has term 2, as that of a single etcd 3.4 has.
const termBeforeFirstStart = 1;

interface Proposal {
  readonly bytes: Uint8Array;
  readonly resolve: (sequence: number) => void;
  readonly reject: (error: WalError) => void;
}

/** Proposals on their way to the disk. */
interface Batch {
  readonly proposals: readonly Proposal[];
  /** How many records come before theirs. */
  readonly termRecords: number;
  /** The sequence of the first record, or what went wrong. */
  readonly appended: Promise<number | WalError>;
}

/** What is known once the log was replayed. */
interface Opened {
  readonly writer: SegmentWriter;
  readonly clusterId: bigint;
  readonly identity: LogIdentity;
  readonly listener: CommittedListener;
}

export class FileLog implements LogPort {
  readonly #options: FileLogOptions;
  readonly #unlock: () => void;
  readonly #snapshots: SnapshotFiles;
  #opened: Opened | undefined;
  #status: LogStatus = "closed";
  /** The one that was loaded. */
  #snapshot: StoredSnapshot | undefined;
  #waiting: Proposal[] = [];
  #waitingBytes = 0;
  #opening: Promise<void> | undefined;
  #writing: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;
  #isTermLogged = false;
  /** The last batch failed: the log says so once, not for every batch of a full disk. */
  #isFailing = false;

  private constructor(options: FileLogOptions, unlock: () => void) {
    this.#options = options;
    this.#unlock = unlock;
    this.#snapshots = new SnapshotFiles(options.files, options.directory);
  }

  /**
   * Takes the directory, and makes it when it is missing. Nothing is read yet.
   * @throws {WalError} locked, unusable.
   */
  static async open(options: FileLogOptions): Promise<FileLog> {
    const { files, directory, lock } = options;
    try {
      await files.makeDirectory(directory);
    } catch (error) {
      throw startFailure("Making", directory, error);
    }
    return new FileLog(options, lock(directory));
  }

  get identity(): LogIdentity {
    assert(this.#opened !== undefined, "The identity is in the log, which was not read yet");
    return this.#opened.identity;
  }

  get status(): LogStatus {
    return this.#status;
  }

  onCommitted(listener: CommittedListener): Promise<void> {
    assert(this.#opening === undefined && this.#stopping === undefined, "A log is opened once");
    this.#opening = this.#open(listener).catch((error: unknown) => {
      throw startFailure("Opening", this.#options.directory, error);
    });
    return this.#opening;
  }

  propose(bytes: Uint8Array): Promise<number> {
    if (this.#status !== "writable") return Promise.reject(this.#refusal(this.#status));
    const { maxWaitingBytes = presetWaitingBytes } = this.#options;
    if (this.#waitingBytes > 0 && this.#waitingBytes + bytes.length > maxWaitingBytes) {
      return Promise.reject(
        new WalError("overloaded", "Writing the log: too much waits for the disk; try again later"),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ bytes, resolve, reject });
      this.#waitingBytes += bytes.length;
      this.#writing ??= this.#writeWaiting();
    });
  }

  async saveSnapshot(sequence: number, pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void> {
    assert(this.#opened !== undefined, "A snapshot is of a log that was read");
    const { clock, log } = this.#options;
    const startMs = clock.monotonicMs();
    try {
      await this.#snapshots.save({ clusterId: this.#opened.clusterId, sequence }, pieces);
    } catch (error) {
      throw this.#snapshotFailure("Saving a snapshot", error);
    }
    log.info({ sequence, seconds: (clock.monotonicMs() - startMs) / 1_000 }, "snapshot saved");
  }

  async loadSnapshot(): Promise<Snapshot | undefined> {
    assert(this.#opened === undefined, "A snapshot is loaded before the log is read");
    try {
      this.#snapshot = await this.#snapshots.load();
    } catch (error) {
      throw startFailure("Opening", this.#options.directory, error);
    }
    return this.#snapshot;
  }

  async releaseBefore(sequence: number): Promise<void> {
    const { files, directory } = this.#options;
    try {
      const segments = await listSegments(files, directory);
      for (const [number, name] of segments.entries()) {
        const next = segments[number + 1];
        if (next === undefined || firstSequenceOf(next) > sequence) return;
        await files.remove(resolve(directory, name));
      }
    } catch (error) {
      throw this.#snapshotFailure("Removing segments", error);
    }
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #open(listener: CommittedListener): Promise<void> {
    const { directory, log } = this.#options;
    const end = await this.#readOrCreate(listener);
    const term = end.term + 1;
    const writer = await SegmentWriter.resume({ ...this.#writerOptions(), term }, end);
    const { clusterId, memberId } = end.head;
    const run = randomId(this.#options.random).toString(16);
    const identity = { clusterId: clusterId.toString(16), memberId: memberId.toString(16), term, run };
    this.#opened = { writer, clusterId, identity, listener };
    log.info({ directory, records: end.lastSequence, cutBytes: end.tornBytes, clean: end.isSealed }, "log opened");
    // Only the term. On a full disk this fails, and the next batch that succeeds carries it.
    const batch = this.#begin([]);
    this.#settle(batch, await batch.appended);
    this.#status = writer.isBroken ? "readOnly" : "writable";
  }

  async #stop(): Promise<void> {
    // Whoever opens the log is told why that failed.
    await this.#opening?.catch(() => undefined);
    const wasWritable = this.#status === "writable";
    this.#status = "closed";
    await this.#writing;
    const writer = this.#opened?.writer;
    if (writer !== undefined) {
      if (wasWritable && !writer.isBroken) await this.#append(writer, [{ kind: "seal" }]);
      // Everything in it was synced, so nothing is lost, and the directory is to be given back all the same.
      await writer.close().catch((error: unknown) => this.#options.log.warn({ err: error }, "log cannot be closed"));
    }
    this.#unlock();
  }

  async #readOrCreate(listener: CommittedListener): Promise<LogEnd> {
    const { files, directory } = this.#options;
    await removeUnfinishedFiles(files, directory);
    const after = this.#snapshot?.sequence ?? 0;
    const end = await recover({ files, directory, after, onCommand: listener }).catch((error: unknown) => {
      throw this.#isForWantOfSnapshot(error) ? this.#snapshots.readFailure : error;
    });
    if (this.#snapshot !== undefined) checkGoesOnFrom(this.#snapshot, end, directory);
    return end ?? this.#create();
  }

  /** True when what seems to be missing may be in a snapshot that the disk could not read: that is no damage. */
  #isForWantOfSnapshot(error: unknown): boolean {
    const isDamage = error instanceof WalError && error.reason === "damaged";
    return isDamage && this.#snapshot === undefined && this.#snapshots.readFailure !== undefined;
  }

  async #create(): Promise<LogEnd> {
    const { head, segment } = await beginLog(this.#options, { term: termBeforeFirstStart, firstSequence: 1 });
    const { term } = head;
    return { head, segment, size: segmentHeadBytes, tornBytes: 0, lastBatch: 0, lastSequence: 0, term, isSealed: true };
  }

  /** Batch after batch: before one is applied and answered, which takes a while, the disk has the next already. */
  async #writeWaiting(): Promise<void> {
    let batch = this.#begin(this.#takeBatch());
    for (;;) {
      const result = await batch.appended;
      const isNextBegun = !(result instanceof WalError) && this.#waiting.length > 0;
      const next = isNextBegun ? this.#begin(this.#takeBatch()) : undefined;
      this.#settle(batch, result);
      if (next === undefined && this.#waiting.length === 0) break;
      batch = next ?? this.#begin(this.#takeBatch());
    }
    this.#writing = undefined;
  }

  #takeBatch(): readonly Proposal[] {
    let bytes = 0;
    let count = 0;
    for (const proposal of this.#waiting) {
      if (count > 0 && bytes + proposal.bytes.length > maxBatchBytes) break;
      bytes += proposal.bytes.length;
      count += 1;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, count);
  }

  #begin(proposals: readonly Proposal[]): Batch {
    assert(this.#opened !== undefined, "Nothing is written before the log was read");
    const { writer, identity } = this.#opened;
    const commands = proposals.map(({ bytes }): LogRecord => ({ kind: "command", bytes }));
    const termRecords: LogRecord[] = this.#isTermLogged ? [] : [{ kind: "term", term: identity.term }];
    const appended = this.#append(writer, [...termRecords, ...commands]);
    return { proposals, termRecords: termRecords.length, appended };
  }

  #settle({ proposals, termRecords }: Batch, result: number | WalError): void {
    assert(this.#opened !== undefined, "A batch is of a log that was read");
    const { writer, listener, identity } = this.#opened;
    if (result instanceof WalError) {
      for (const { reject } of proposals) reject(result);
      if (writer.isBroken) this.#giveUp();
      return;
    }
    const firstCommand = result + termRecords;
    for (const [number, { bytes, resolve: done }] of proposals.entries()) {
      listener(firstCommand + number, bytes, identity.term);
      done(firstCommand + number);
    }
  }

  /** The first sequence, or what went wrong, which is logged here. */
  async #append(writer: SegmentWriter, records: readonly LogRecord[]): Promise<number | WalError> {
    const { clock, log, observeSyncSeconds } = this.#options;
    const startMs = clock.monotonicMs();
    try {
      const sequence = await writer.append(records);
      observeSyncSeconds?.((clock.monotonicMs() - startMs) / 1_000);
      if (this.#isFailing) log.info({}, "log can be written again");
      this.#isFailing = false;
      this.#isTermLogged = true;
      return sequence;
    } catch (error) {
      if (!(error instanceof WalError)) throw error;
      if (!this.#isFailing) log.error({ err: error, reason: error.reason }, "log cannot be written");
      this.#isFailing = true;
      return error;
    }
  }

  /** What the disk refused, which is logged here; anything else as it is. */
  #snapshotFailure(doing: string, error: unknown): unknown {
    if (error instanceof WalError || codeOf(error) === undefined) return error;
    this.#options.log.error({ err: error }, "snapshot cannot be kept");
    return new WalError("appendFailed", `${doing}: ${messageOf(error)}`, { cause: error });
  }

  /** Nothing can be written until a restart: everything that waits is told so. */
  #giveUp(): void {
    if (this.#status === "writable") this.#status = "readOnly";
    for (const { reject } of this.#waiting.splice(0)) reject(this.#refusal("readOnly"));
    this.#waitingBytes = 0;
  }

  #refusal(status: Exclude<LogStatus, "writable">): WalError {
    if (status === "closed") return new WalError("closed", "Writing the log: it is closed");
    return new WalError(
      "readOnly",
      "Writing the log: a write failed for good; restart davit when the disk is well again",
    );
  }

  #writerOptions() {
    const { directory, files, random, maxSegmentBytes = presetSegmentBytes } = this.#options;
    return { directory, files, maxSegmentBytes, randomId: () => randomId(random) };
  }
}
