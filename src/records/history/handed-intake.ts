/**
 * Takes the requests that followers hand on into the history, at a limited rate: davit has more important work. A
 * follower sends the others again, and drops its oldest ones if they become too many.
 */

import type { Clock } from "../../lib/clock.ts";
import { nextTurn, Slices } from "../../lib/slices.ts";
import { TokenBucket } from "../../lib/token-bucket.ts";
import type { HistoryBatch } from "../../model/history-batch.ts";
import { decodeHanded } from "./handed-request.ts";
import type { History } from "./history.ts";
import type { RefusalNames } from "./journal-line.ts";

export interface HandedIntakeOptions {
  readonly history: Pick<History, "isTaking" | "load" | "add" | "miss">;
  readonly names: RefusalNames;
  readonly clock: Clock;
}

interface TakenRun {
  /** The number of the first request that is not taken yet. */
  next: number;
  /** How many requests the follower has dropped. */
  dropped: number;
}

const rate = { perSecond: 1_000, burst: 2_048 } as const;
/** This many requests take less than a millisecond. */
const sliceSize = 32;
/** davit remembers how far it has taken the requests of this many runs of followers. */
const maxRuns = 4_096;

export class HandedIntake {
  readonly #options: HandedIntakeOptions;
  readonly #bucket: TokenBucket;
  /** How far the requests are taken, by the run of their follower; the last one heard is last. */
  readonly #runs = new Map<string, TakenRun>();

  constructor(options: HandedIntakeOptions) {
    this.#options = options;
    this.#bucket = new TokenBucket({ clock: options.clock, ...rate });
  }

  /**
   * Adds the requests of a batch to the history, apart from those that it has taken before.
   * @param arrivedMs by the monotonic clock.
   * @returns how many requests of the batch are done with, from its first one on.
   */
  async take(batch: HistoryBatch, arrivedMs: number): Promise<number> {
    const { history, names } = this.#options;
    const { via, first, agoMs, requests } = batch;
    if (!history.isTaking) {
      // Requests before the start of this davit come first.
      void history.load();
      return 0;
    }
    const run = this.#runOf(batch);
    const from = Math.min(Math.max(run.next - first, 0), requests.length);
    let to = from;
    while (to < requests.length && this.#bucket.tryTake()) to++;
    // At once, because the follower may send the batch again before it is added.
    run.next = Math.max(run.next, first + to);
    const slices = new Slices(sliceSize);
    for (let at = from; at < to; at++) {
      if (!history.isTaking) return at;
      const entry = decodeHanded(requests[at] ?? null, { via, arrivedMs, agoMs: agoMs[at] ?? 0 }, names);
      if (entry !== undefined) history.add(entry);
      if (slices.isOver(1)) await nextTurn();
    }
    return to;
  }

  #runOf({ run, dropped }: HistoryBatch): TakenRun {
    const known = this.#runs.get(run) ?? { next: 0, dropped: 0 };
    this.#options.history.miss(Math.max(0, dropped - known.dropped));
    known.dropped = Math.max(dropped, known.dropped);
    this.#runs.delete(run);
    this.#runs.set(run, known);
    if (this.#runs.size > maxRuns) {
      const [oldest = run] = this.#runs.keys();
      this.#runs.delete(oldest);
    }
    return known;
  }
}
