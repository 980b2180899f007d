/**
 * The log in files: one writer, one directory.
 *
 * A proposal is answered only after its record is on disk. After a crash, the log still has every answered record. It
 * may also have the first few unanswered ones. Proposals that arrive while the disk is busy share one write and one
 * fdatasync. While the disk is full or fails, reads continue, and the log checks whether it can write again.
 *
 * The log never decodes a command, and never repairs damage that a crash cannot cause. `recover.ts` says what a crash
 * can leave, and `record.ts` has the format.
 */

import { resolve } from "node:path";
import { steadyClock } from "../../lib/clock.ts";
import { assert, codeOf } from "../../lib/errors.ts";
import {
  type CommittedListener,
  type LogIdentity,
  type LogMembership,
  type LogPort,
  type LogStatus,
  type ProposeOptions,
  randomId,
  type Snapshot,
  soleMembership,
  WalError,
} from "../core/log-port.ts";
import { type FileLogOptions, readOrBegin } from "./begin-log.ts";
import { refusalOf, snapshotFailure, startFailure, statusAfter, troubleOf } from "./failures.ts";
import type { DirectoryLock } from "./lock.ts";
import { EndNote } from "./log-end.ts";
import type { LogRecord } from "./record.ts";
import { firstSequenceOf, listSegments } from "./recover.ts";
import { Reserve } from "./reserve.ts";
import { isNoSpace, SegmentWriter } from "./segment-writer.ts";
import { SnapshotFiles, type StoredSnapshot } from "./snapshots.ts";
import { type Proposal, WaitingProposals } from "./waiting.ts";

// How often the log checks whether the disk can be written again.
const retryMs = 1_000;
// A start reads a whole segment into memory, and only whole segments are removed.
const presetSegmentBytes = 64 * 1024 * 1024;
// A first sync of 10,000 objects is one proposal of about 50 MiB, and clients continue to write meanwhile.
const presetWaitingBytes = 256 * 1024 * 1024;

/** Proposals on their way to the disk. */
interface WriteBatch {
  readonly proposals: readonly Proposal[];
  /** How many records the log adds before those of the proposals: 1 for its term, or 0. */
  readonly termRecords: number;
  /** The sequence of the first record, or the failure of the write. */
  readonly appended: Promise<number | WalError>;
}

/** The parts of a log that was replayed. */
interface Opened {
  readonly writer: SegmentWriter;
  readonly clusterId: bigint;
  readonly identity: LogIdentity;
  readonly listener: CommittedListener;
  readonly note: EndNote;
}

export class FileLog implements LogPort {
  readonly snapshotsPerPurge = 2;
  readonly membership: LogMembership;
  readonly #options: FileLogOptions;
  readonly #lock: DirectoryLock;
  readonly #reserve: Reserve;
  readonly #snapshots: SnapshotFiles;
  #opened: Opened | undefined;
  #status: LogStatus = "closed";
  /** The snapshot that the store loaded. */
  #snapshot: StoredSnapshot | undefined;
  readonly #waiting = new WaitingProposals();
  #opening: Promise<void> | undefined;
  #writing: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;
  #recovering: Promise<void> | undefined;
  #watchingLock: Promise<void> | undefined;
  readonly #ending = new AbortController();
  #isTermLogged = false;
  /** True from a failure until a write succeeds and the reserve exists. Meanwhile no other failure is logged. */
  #isFailing = false;
  /** True if the last batch failed on a full disk and freed the reserve. Then records that free room are retried. */
  #isRoomMade = false;

  private constructor(options: FileLogOptions, lock: DirectoryLock) {
    this.#options = options;
    this.#lock = lock;
    const { files, directory, random, reserveBytes = 0 } = options;
    this.#reserve = new Reserve({ files, directory, random, bytes: reserveBytes });
    this.#snapshots = new SnapshotFiles(options.files, options.directory);
    this.membership = soleMembership(steadyClock(options.clock));
  }

  /**
   * Makes the directory if it is missing, and locks it. It does not read the log yet.
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

  get trouble(): string | undefined {
    return troubleOf(this.#status);
  }

  onCommitted(listener: CommittedListener): Promise<void> {
    assert(this.#opening === undefined && this.#stopping === undefined, "A log is opened once");
    this.#opening = this.#open(listener).catch((error: unknown) => {
      throw startFailure("Opening", this.#options.directory, error);
    });
    return this.#opening;
  }

  propose(bytes: Uint8Array, options?: ProposeOptions): Promise<number> {
    const frees = options?.frees ?? false;
    if (this.#status !== "writable" && !(this.#status === "full" && frees)) {
      return Promise.reject(refusalOf(this.#status));
    }
    const { maxWaitingBytes = presetWaitingBytes } = this.#options;
    if (this.#waiting.isOver(bytes.length, maxWaitingBytes)) {
      return Promise.reject(
        new WalError("overloaded", "Writing the log: too much waits for the disk; try again later"),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.add({ bytes, frees, resolve, reject });
      this.#writing ??= this.#writeWaiting();
    });
  }

  endSegment(): void {
    this.#opened?.writer.endSegment();
  }

  async saveSnapshot(sequence: number, pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void> {
    assert(this.#opened !== undefined, "A snapshot is of a log that was read");
    const { clock, log } = this.#options;
    const startMs = clock.monotonicMs();
    try {
      await this.#snapshots.save({ clusterId: this.#opened.clusterId, sequence }, pieces);
    } catch (error) {
      throw snapshotFailure(log, "Saving a snapshot", error);
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
    for (const { path, problem, used } of this.#snapshots.passedOver) {
      const why = problem === "damaged" ? "is damaged" : "cannot be read from the disk";
      this.#options.log.error({ path, used }, `snapshot ${why}, and passed over`);
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
      throw snapshotFailure(this.#options.log, "Removing segments", error);
    }
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #open(listener: CommittedListener): Promise<void> {
    const { directory, log, lockCheckMs } = this.#options;
    const end = await readOrBegin(this.#options, { snapshots: this.#snapshots, snapshot: this.#snapshot, listener });
    const term = end.term + 1;
    const writer = await SegmentWriter.resume({ ...this.#writerOptions(), term }, end);
    const { clusterId, memberId } = end.head;
    const run = randomId(this.#options.random).toString(16);
    const identity = { clusterId: clusterId.toString(16), memberId: memberId.toString(16), term, run };
    const note = new EndNote({ ...this.#options, clusterId });
    this.#opened = { writer, clusterId, identity, listener, note };
    const { tornBytes: cutBytes, segment } = end;
    if (cutBytes > 0) log.warn({ segment, cutBytes }, "bytes of an incomplete write were cut off the log");
    log.info({ directory, records: end.lastSequence, cutBytes, clean: end.isSealed }, "log opened");
    const hasReserve = await this.#makeReserve();
    // This writes only the term. On a full disk this fails, and the next successful batch carries the term.
    const result = await this.#begin([]).appended;
    if (result instanceof WalError) this.#setStatus(statusAfter(result, writer));
    else this.#setStatus(hasReserve ? "writable" : "full");
    if (lockCheckMs !== undefined) this.#watchingLock = this.#watchLock(lockCheckMs);
  }

  async #stop(): Promise<void> {
    // The caller of `onCommitted` already gets this failure.
    await this.#opening?.catch(() => undefined);
    const mayWrite = this.#status === "writable" || this.#status === "full";
    this.#status = "closed";
    this.#ending.abort();
    await this.#recovering;
    await this.#watchingLock;
    await this.#writing;
    if (this.#opened !== undefined) await this.#close(this.#opened, mayWrite);
    this.#lock.release();
  }

  async #close({ writer, note }: Opened, mayWrite: boolean): Promise<void> {
    const { log } = this.#options;
    if (mayWrite && !writer.isBroken) {
      const sequence = await this.#append(writer, [{ kind: "seal" }]);
      if (!(sequence instanceof WalError)) await note.write(sequence);
    }
    // A failed close loses nothing, because everything was synced. The directory must be released in any case.
    await writer.close().catch((error: unknown) => log.warn({ err: error }, "log cannot be closed"));
  }

  /** Writes batches until nothing waits. While it applies and answers one batch, the disk already writes the next. */
  async #writeWaiting(): Promise<void> {
    let batch = this.#begin(this.#waiting.take());
    for (;;) {
      const result = await batch.appended;
      const isNextBegun = !(result instanceof WalError) && !this.#waiting.isEmpty;
      const next = isNextBegun ? this.#begin(this.#waiting.take()) : undefined;
      this.#settle(batch, result);
      if (next === undefined && this.#waiting.isEmpty) break;
      batch = next ?? this.#begin(this.#waiting.take());
    }
    this.#writing = undefined;
  }

  #begin(proposals: readonly Proposal[]): WriteBatch {
    assert(this.#opened !== undefined, "Nothing is written before the log was read");
    const { writer, identity } = this.#opened;
    const commands = proposals.map(({ bytes }): LogRecord => ({ kind: "command", bytes }));
    const termRecords: LogRecord[] = this.#isTermLogged ? [] : [{ kind: "term", term: identity.term }];
    const appended = this.#append(writer, [...termRecords, ...commands]);
    return { proposals, termRecords: termRecords.length, appended };
  }

  #settle({ proposals, termRecords }: WriteBatch, result: number | WalError): void {
    assert(this.#opened !== undefined, "Batches follow the reading of the log");
    const { listener, identity } = this.#opened;
    if (result instanceof WalError) {
      this.#refuse(proposals, result, this.#opened.writer);
      return;
    }
    const firstCommand = result + termRecords;
    for (const [number, { bytes, resolve: done }] of proposals.entries()) {
      listener(firstCommand + number, bytes, identity.term);
      done(firstCommand + number);
    }
  }

  /** Rejects proposals that cannot be logged. If the reserve was just freed, it retries those that free room. */
  #refuse(proposals: readonly Proposal[], reason: WalError, writer: SegmentWriter): void {
    const status = statusAfter(reason, writer);
    this.#setStatus(status);
    const again = this.#isRoomMade && status === "full" ? proposals.filter(({ frees }) => frees) : [];
    this.#isRoomMade = false;
    for (const proposal of proposals) if (!again.includes(proposal)) proposal.reject(reason);
    for (const { reject } of this.#waiting.keepOnly(again, status === "full")) reject(refusalOf(status));
  }

  /** Writes records. @returns the sequence of the first one, or the failure, which it has logged. */
  async #append(writer: SegmentWriter, records: readonly LogRecord[]): Promise<number | WalError> {
    const { clock, observeSyncSeconds } = this.#options;
    const startMs = clock.monotonicMs();
    try {
      if (!this.#lock.isHeld()) throw refusalOf("lost");
      const sequence = await writer.append(records);
      // If the lock was lost, another process may have read the log without this batch: no proposal counts as logged.
      if (!this.#lock.isHeld()) throw refusalOf("lost");
      observeSyncSeconds?.((clock.monotonicMs() - startMs) / 1_000);
      this.#isTermLogged = true;
      await this.#opened?.note.segmentHas(writer.segment, sequence);
      this.#succeeded();
      return sequence;
    } catch (error) {
      if (!(error instanceof WalError)) throw error;
      await this.#failed(error);
      return error;
    }
  }

  #succeeded(): void {
    if (this.#isFailing && this.#reserve.isThere) {
      this.#options.log.info({}, "log can be written again");
      this.#isFailing = false;
    }
  }

  async #failed(error: WalError): Promise<void> {
    if (!this.#isFailing) this.#options.log.error({ err: error, reason: error.reason }, "log cannot be written");
    this.#isFailing = true;
    if (isNoSpace(error)) this.#isRoomMade = await this.#reserve.giveUp();
  }

  /** Makes the reserve. @returns false when the disk has no room for it. */
  async #makeReserve(): Promise<boolean> {
    try {
      await this.#reserve.make();
      return true;
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      if (!this.#isFailing) this.#options.log.error({ err: error }, "room for a full disk cannot be kept");
      this.#isFailing = true;
      return !isNoSpace(error);
    }
  }

  #setStatus(status: LogStatus): void {
    if (this.#ending.signal.aborted || this.#status === "lost") return;
    this.#status = status;
    if (status === "full" || status === "readOnly") this.#recovering ??= this.#keepTrying();
  }

  /** Retries once a second while the disk is full or fails. */
  async #keepTrying(): Promise<void> {
    const { signal } = this.#ending;
    while (this.#status === "full" || this.#status === "readOnly") {
      await this.#options.clock.sleep(retryMs, signal);
      if (signal.aborted) return;
      await this.#tryAgain();
    }
    this.#recovering = undefined;
  }

  async #watchLock(everyMs: number): Promise<void> {
    const { signal } = this.#ending;
    while (this.#lock.isHeld()) {
      await this.#options.clock.sleep(everyMs, signal);
      if (signal.aborted) return;
    }
    await this.#failed(refusalOf("lost"));
    this.#setStatus("lost");
  }

  /** Waits for a running write, then recovers. No other write begins meanwhile. */
  async #tryAgain(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    this.#writing = this.#recover().then(() => {
      this.#writing = !this.#waiting.isEmpty ? this.#writeWaiting() : undefined;
    });
    await this.#writing;
  }

  /** Repairs what a failure left, and writes the term as a test. */
  async #recover(): Promise<void> {
    assert(this.#opened !== undefined, "Only an open log can fail");
    const { writer } = this.#opened;
    try {
      await writer.repair();
    } catch (error) {
      if (!(error instanceof WalError)) throw error;
      await this.#failed(error);
      return;
    }
    const hasReserve = await this.#makeReserve();
    if (!hasReserve) {
      this.#setStatus("full");
      return;
    }
    this.#isTermLogged = false;
    const result = await this.#begin([]).appended;
    this.#setStatus(result instanceof WalError ? statusAfter(result, writer) : "writable");
  }

  #writerOptions() {
    const { directory, files, random, log, maxSegmentBytes = presetSegmentBytes } = this.#options;
    const onSyncFailure = (error: unknown) =>
      log.error({ err: error }, "a sync of the log failed; what was being written goes into a new segment");
    return { directory, files, maxSegmentBytes, randomId: () => randomId(random), onSyncFailure };
  }
}
