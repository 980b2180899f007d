/**
 * A share of the Events: a few at once, and sums of the others. Shares do not slow each other down. A sum waits only
 * for its turn, so a steady stream of Events does not delay it.
 */

import type { Clock } from "../../lib/clock.ts";
import { TokenBucket } from "../../lib/token-bucket.ts";

/** An Event, and the sum that it can become a part of. */
export interface SharedEvent {
  /** One sum is of Events with equal subjects. */
  readonly subject: string;
  /** @param more how many Events it stands for; 1: it is written as if it had not waited. */
  readonly write: (more: number) => void;
}

/** Each share costs the API server about half an Event a second at most, after its burst. */
const pace = { perSecond: 0.2, burst: 20 } as const;
const turnMs = 30_000;
/** Further sums wait for the next turn, the oldest first. */
const sumsPerTurn = 10;
/** More subjects do not wait: their Events are dropped. */
const maxSubjects = 1_024;

export class EventShare {
  readonly #clock: Clock;
  readonly #bucket: TokenBucket;
  /** By subject; the oldest is first. */
  readonly #sums = new Map<string, { readonly first: SharedEvent; count: number }>();
  readonly #stopping = new AbortController();
  #summing: Promise<void> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#bucket = new TokenBucket({ clock, ...pace });
  }

  /** Writes an Event now, or with others in a later turn. */
  take(event: SharedEvent): void {
    if (this.#bucket.tryTake()) {
      event.write(1);
      return;
    }
    const sum = this.#sums.get(event.subject);
    if (sum !== undefined) sum.count += 1;
    else if (this.#sums.size < maxSubjects) this.#sums.set(event.subject, { first: event, count: 1 });
    this.#summing ??= this.#sum();
  }

  /** Drops what waits. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#summing;
  }

  async #sum(): Promise<void> {
    const { signal } = this.#stopping;
    while (this.#sums.size > 0) {
      await this.#clock.sleep(turnMs, signal);
      if (signal.aborted) return;
      for (const [subject, { first, count }] of [...this.#sums].slice(0, sumsPerTurn)) {
        this.#sums.delete(subject);
        first.write(count);
      }
    }
    this.#summing = undefined;
  }
}
