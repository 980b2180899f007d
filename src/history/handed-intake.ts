/**
 * Takes the requests that followers hand on into the history, at a limited rate: davit has more important work. A
 * follower sends the others again, and drops its oldest ones if they become too many.
 */

import type { Clock } from "../lib/clock.ts";
import { nextTurn, Slices } from "../lib/slices.ts";
import { TokenBucket } from "../lib/token-bucket.ts";
import type { HistoryBatch } from "../model/history-batch.ts";
import { decodeHanded } from "./handed-request.ts";
import type { History } from "./history.ts";
import type { RefusalNames } from "./journal-line.ts";

export interface HandedIntakeOptions {
  readonly history: Pick<History, "isLoaded" | "load" | "add">;
  readonly names: RefusalNames;
  readonly clock: Clock;
}

const rate = { perSecond: 1_000, burst: 2_048 } as const;
/** This many requests take less than a millisecond. */
const sliceSize = 32;
/** davit remembers how far it has taken the requests of this many runs of followers. */
const maxRuns = 4_096;

export class HandedIntake {
  readonly #options: HandedIntakeOptions;
  readonly #bucket: TokenBucket;
  /** The number of the first request that is not taken yet, by the run of its follower; the last one heard is last. */
  readonly #nextOf = new Map<string, number>();

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
    const { via, run, first, agoMs, requests } = batch;
    if (!history.isLoaded) {
      // Requests of earlier runs come first.
      void history.load();
      return 0;
    }
    const from = Math.min(Math.max((this.#nextOf.get(run) ?? 0) - first, 0), requests.length);
    let to = from;
    while (to < requests.length && this.#bucket.tryTake()) to++;
    // At once, because the follower may send the batch again before it is added.
    this.#remember(run, first + to);
    const slices = new Slices(sliceSize);
    for (let at = from; at < to; at++) {
      const entry = decodeHanded(requests[at] ?? null, { via, arrivedMs, agoMs: agoMs[at] ?? 0 }, names);
      if (entry !== undefined) history.add(entry);
      if (slices.isOver(1)) await nextTurn();
    }
    return to;
  }

  #remember(run: string, next: number): void {
    const known = this.#nextOf.get(run) ?? 0;
    this.#nextOf.delete(run);
    this.#nextOf.set(run, Math.max(known, next));
    if (this.#nextOf.size <= maxRuns) return;
    const [oldest = run] = this.#nextOf.keys();
    this.#nextOf.delete(oldest);
  }
}
