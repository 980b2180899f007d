/**
 * Takes snapshots beside everything else, so that a start need not read all that was ever written.
 *
 * A snapshot is of one moment, right after a record. It is encoded in slices of a millisecond or two, and writes go on
 * meanwhile. Once it is on disk the log may forget what is before the snapshot before it. One that fails costs nothing
 * but the time of the next start: another is taken when as much again was logged.
 *
 * On a full disk two are taken, one after the other, once half of what the store held is gone: then all of the log before
 * them can be released. They have less of the history, which the large values of what was deleted would fill.
 */

import { nextTurn } from "../lib/slices.ts";
import type { EventRing } from "./event-ring.ts";
import type { Lineage } from "./lineage.ts";
import { type LogPort, WalError } from "./log-port.ts";
import { StoreError } from "./refusal.ts";
import { encodeState, type State } from "./snapshot.ts";
import type { Tree } from "./tree.ts";

/** How much is logged between two snapshots: whichever comes first. */
export interface SnapshotInterval {
  readonly records: number;
  readonly bytes: number;
}

export interface SnapshotterOptions {
  readonly log: LogPort;
  readonly tree: Tree;
  readonly history: EventRing;
  readonly lineage: Lineage;
  readonly interval?: SnapshotInterval | undefined;
  /** Of the last record that was applied. */
  readonly sequence: () => number;
  /** Time of that record by the clock of its run; undefined before the first. */
  readonly lastAtMs: () => number | undefined;
  /** Logs and applies a record that changes nothing. @throws {StoreError} logFailed. */
  readonly mark: () => Promise<void>;
}

// As many as the log keeps.
const keptSnapshots = 2;

// On a full disk.
const squeezedHistoryBytes = 512 * 1024;

// A start replays at most twice that, which takes seconds.
const presetInterval: SnapshotInterval = { records: 100_000, bytes: 64 * 1024 * 1024 };

export class Snapshotter {
  readonly #options: SnapshotterOptions;
  readonly #interval: SnapshotInterval;
  #records = 0;
  #bytes = 0;
  /** Sequence of the newest snapshot; 0 for none. */
  #newest = 0;
  /** The most that the tree held since the last snapshots on a full disk. */
  #peakBytes = 0;
  #running: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: SnapshotterOptions) {
    this.#options = options;
    this.#interval = options.interval ?? presetInterval;
  }

  /** Is told from which snapshot the state was built. */
  loaded(sequence: number): void {
    this.#newest = sequence;
  }

  /** Is told of every record that was applied. */
  count(bytes: number): void {
    this.#records += 1;
    this.#bytes += bytes;
  }

  /** Begins a snapshot if it is time for one. */
  takeIfDue(): void {
    const { log, tree } = this.#options;
    this.#peakBytes = Math.max(this.#peakBytes, tree.bytes);
    if (log.status === "full" && tree.bytes <= this.#peakBytes / 2) this.#begin(() => this.#squeeze());
    const isDue = this.#records >= this.#interval.records || this.#bytes >= this.#interval.bytes;
    if (isDue) this.#begin(() => this.#take());
  }

  /** Gives up a snapshot that is being taken. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  #begin(take: () => Promise<void>): void {
    if (this.#running !== undefined || this.#isStopped) return;
    this.#records = 0;
    this.#bytes = 0;
    this.#running = take().finally(() => {
      this.#running = undefined;
    });
  }

  async #squeeze(): Promise<void> {
    const { log, tree, mark } = this.#options;
    this.#peakBytes = tree.bytes;
    try {
      log.endSegment();
      // Each has a record of its own. The first of these is in the new segment, so all before it can go.
      for (let taken = 0; taken < keptSnapshots; taken++) {
        await mark();
        await this.#take(squeezedHistoryBytes);
      }
    } catch (error) {
      // The log has said why.
      if (!(error instanceof StoreError)) throw error;
    }
  }

  async #take(historyBytes = Number.POSITIVE_INFINITY): Promise<void> {
    const { log, tree, history, lineage, lastAtMs } = this.#options;
    const sequence = this.#options.sequence();
    const walk = tree.walkFrozen();
    const { oldestIndex, events } = history.newest(historyBytes);
    const { origin } = lineage;
    try {
      const state = { index: tree.index, oldestIndex, origin, atMs: lastAtMs(), events, nodes: walk.steps() };
      await log.saveSnapshot(sequence, this.#slices(state));
      const older = this.#newest;
      this.#newest = sequence;
      if (older > 0) await log.releaseBefore(older + 1);
    } catch (error) {
      // The log has said why.
      if (!(error instanceof WalError)) throw error;
    } finally {
      walk.end();
    }
  }

  async *#slices(state: State): AsyncIterable<Uint8Array> {
    for (const slice of encodeState(state)) {
      if (this.#isStopped) throw new WalError("closed", "Saving a snapshot: the store is being stopped");
      if (slice.length > 0) yield slice;
      await nextTurn();
    }
  }
}
