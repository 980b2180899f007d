/**
 * Takes snapshots beside everything else, so that a start need not read all that was ever written.
 *
 * A snapshot is of one moment, right after a record. It is encoded in slices of a millisecond or two, and writes go on
 * meanwhile. Once it is on disk the log may forget what is before the snapshot before it. One that fails costs nothing
 * but the time of the next start: another is taken when as much again was logged.
 */

import { nextTurn } from "../lib/slices.ts";
import type { EventRing } from "./event-ring.ts";
import type { Lineage } from "./lineage.ts";
import { type LogPort, WalError } from "./log-port.ts";
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
}

// A start replays at most twice that, which takes seconds.
const presetInterval: SnapshotInterval = { records: 100_000, bytes: 64 * 1024 * 1024 };

export class Snapshotter {
  readonly #options: SnapshotterOptions;
  readonly #interval: SnapshotInterval;
  #records = 0;
  #bytes = 0;
  /** Sequence of the newest snapshot; 0 for none. */
  #newest = 0;
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

  /** Begins a snapshot if it is time for one. @param sequence of the last record that was applied. */
  takeIfDue(sequence: number): void {
    const isDue = this.#records >= this.#interval.records || this.#bytes >= this.#interval.bytes;
    if (!isDue || this.#running !== undefined || this.#isStopped) return;
    this.#records = 0;
    this.#bytes = 0;
    this.#running = this.#take(sequence).finally(() => {
      this.#running = undefined;
    });
  }

  /** Gives up a snapshot that is being taken. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #take(sequence: number): Promise<void> {
    const { log, tree, history, lineage } = this.#options;
    const walk = tree.walkFrozen();
    const { oldestIndex, all: events } = history;
    const { origin } = lineage;
    try {
      const state = { index: tree.index, oldestIndex, origin, events, nodes: walk.steps() };
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
