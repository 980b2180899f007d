/**
 * Takes snapshots while the store works, so that a start need not read the whole log.
 *
 * A snapshot holds the state right after one record. It is encoded in slices of a millisecond or two, and writes
 * continue between the slices. When it is on disk, the log can drop all records up to the previous snapshot. A failed
 * snapshot only makes the next start slower: davit takes the next one after another interval.
 *
 * On a full disk, davit takes two snapshots in a row after half of the store's content was deleted. Then the log can
 * drop all segments before them. These two hold less of the history, because its events still contain the deleted
 * values. A purge takes as many in a row as the log needs.
 */

import { type LogPort, WalError } from "../core/log-port.ts";
import { StoreError } from "../core/refusal.ts";
import { encodeInTurns, type StoreState } from "./snapshot.ts";
import type { StateMachine } from "./state-machine.ts";

/** How much is logged until the next snapshot: this many records or bytes, whichever limit is reached first. */
export interface SnapshotInterval {
  readonly records: number;
  readonly bytes: number;
}

interface SnapshotterOptions {
  readonly log: LogPort;
  readonly machine: StateMachine;
  readonly interval?: SnapshotInterval | undefined;
  /** The sequence of the last applied record. */
  readonly sequence: () => number;
  /** Logs and applies a record that changes nothing. @throws {StoreError} logFailed. */
  readonly mark: () => Promise<void>;
}

// As many snapshots as the log keeps. So two new ones replace both old ones.
const keptSnapshots = 2;

// The most bytes of history in a snapshot that is taken on a full disk.
const squeezedHistoryBytes = 512 * 1024;

// A start replays little more than two intervals, which takes seconds.
const presetInterval: SnapshotInterval = { records: 100_000, bytes: 64 * 1024 * 1024 };

// A run logs this part of an interval before a snapshot that is due because of earlier runs.
const startShare = 100;

export class Snapshotter {
  readonly #options: SnapshotterOptions;
  readonly #interval: SnapshotInterval;
  #records = 0;
  #bytes = 0;
  /** Those of this run. */
  #ownRecords = 0;
  #ownBytes = 0;
  /** Sequence of the newest snapshot; 0 for none. */
  #newest = 0;
  /** The largest size of the tree since the last snapshots on a full disk. */
  #peakBytes = 0;
  #running: Promise<unknown> | undefined;
  #isStopped = false;

  constructor(options: SnapshotterOptions) {
    this.#options = options;
    this.#interval = options.interval ?? presetInterval;
  }

  /** Called with the sequence of a snapshot that replaced the state. */
  loaded(sequence: number): void {
    this.#newest = sequence;
  }

  /** Called after every applied record. @param isReplayed true for a record that a start read from the log. */
  count(bytes: number, isReplayed: boolean): void {
    this.#records += 1;
    this.#bytes += bytes;
    if (isReplayed) return;
    this.#ownRecords += 1;
    this.#ownBytes += bytes;
  }

  /** Begins a snapshot if one is due and this member leads. */
  takeIfDue(): void {
    const { log, machine } = this.#options;
    const { tree } = machine;
    if (!log.membership.isLeader) return;
    this.#peakBytes = Math.max(this.#peakBytes, tree.bytes);
    if (log.status === "full" && tree.bytes <= this.#peakBytes / 2)
      this.#begin(() => this.#squeeze(keptSnapshots, squeezedHistoryBytes));
    if (this.#isPast(1) && (this.#isStarted || this.#isPast(2))) this.#begin(() => this.#take());
  }

  #isPast(intervals: number): boolean {
    const { records, bytes } = this.#interval;
    return this.#records >= intervals * records || this.#bytes >= intervals * bytes;
  }

  /**
   * False for the first records of a run: those of a start, which a snapshot would slow down. A run that ends before
   * takes none, so the records of many such runs count, too.
   */
  get #isStarted(): boolean {
    const { records, bytes } = this.#interval;
    return this.#ownRecords >= records / startShare || this.#ownBytes >= bytes / startShare;
  }

  /**
   * Takes so many snapshots that the log drops all earlier records, if this member leads.
   * @returns false if this member does not lead, or if a snapshot failed: the log may have earlier records.
   */
  async purge(): Promise<boolean> {
    while (this.#running !== undefined) await this.#running;
    const { membership, snapshotsPerPurge } = this.#options.log;
    if (!membership.isLeader) return false;
    let isDone = false;
    this.#begin(async () => {
      isDone = await this.#squeeze(snapshotsPerPurge, Number.POSITIVE_INFINITY);
    });
    await this.#running;
    return isDone;
  }

  /** Abandons a running snapshot. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  #begin(take: () => Promise<unknown>): void {
    if (this.#running !== undefined || this.#isStopped) return;
    this.#records = 0;
    this.#bytes = 0;
    this.#running = take().finally(() => {
      this.#running = undefined;
    });
  }

  /** @returns false if a snapshot failed. */
  async #squeeze(count: number, historyBytes: number): Promise<boolean> {
    const { log, machine, mark } = this.#options;
    this.#peakBytes = machine.tree.bytes;
    let isDone = true;
    try {
      log.endSegment();
      // Each snapshot follows its own record, so they have different sequences. The first of these records begins the
      // new segment.
      for (let taken = 0; taken < count; taken++) {
        await mark();
        isDone = (await this.#take(historyBytes)) && isDone;
      }
      return isDone;
    } catch (error) {
      // The `LogPort` has already logged the reason.
      if (!(error instanceof StoreError)) throw error;
      return false;
    }
  }

  /** @returns false if the snapshot failed, or the removal of what it replaces. */
  async #take(historyBytes?: number): Promise<boolean> {
    const { log, machine } = this.#options;
    const sequence = this.#options.sequence();
    const { state, end } = machine.freeze(historyBytes);
    try {
      await log.saveSnapshot(sequence, this.#slices(state));
      const older = this.#newest;
      this.#newest = sequence;
      if (older > 0) await log.releaseBefore(older + 1);
      return true;
    } catch (error) {
      // The `LogPort` has already logged the reason.
      if (!(error instanceof WalError)) throw error;
      return false;
    } finally {
      end();
    }
  }

  async *#slices(state: StoreState): AsyncIterable<Uint8Array> {
    for await (const slice of encodeInTurns(state)) {
      if (this.#isStopped) throw new WalError("closed", "Saving a snapshot: the store is being stopped");
      yield slice;
    }
  }
}
