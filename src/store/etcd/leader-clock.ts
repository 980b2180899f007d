/**
 * The leader's clock, as this member knows it. Members stamp their records with it, so a member whose own clock is
 * wrong ends no key early or late.
 *
 * Each batch and each heartbeat of the leader carries a reading. It is never ahead of the leader's clock when it
 * arrives, but late by its time on the way. So the best of the last heartbeats counts: after a slow one, the keys that
 * clients write at this member would end early.
 *
 * A heartbeat may lie in etcd for seconds before this member reads it. So it also repeats the time at which this member
 * asked its last question. The leader made the reading after that question, so the reading is at most as old as the
 * question: `behindMs`.
 */

import type { LogTime } from "../core/log-port.ts";
import type { LeaderTime } from "./batches.ts";

// Half a minute of heartbeats: two clocks drift apart by a millisecond or so in this time.
const keptReadings = 16;
// Each of two readings is rounded down to a millisecond.
const roundingMs = 2;

/** What to add to the own clock, as a heartbeat shows it. The leader's clock is between the two results. */
interface Offsets {
  readonly leastMs: number;
  /** Infinity if the leader answered no question. */
  readonly mostMs: number;
}

export class LeaderClock {
  readonly #ownMs: () => number;
  /** Added to the own clock. */
  #offsetMs = 0;
  #term = 0;
  /** The last heartbeats of the term; empty before the first one. */
  #heard: readonly Offsets[] = [];
  /** The heartbeat of a leader whose term has not begun here. */
  #early: (Offsets & { readonly term: number }) | undefined;

  /** @param ownMs this member's clock, which never steps. */
  constructor(ownMs: () => number) {
    this.#ownMs = ownMs;
  }

  /** This member's own clock: that of its terms. */
  get ownMs(): number {
    return this.#ownMs();
  }

  now(): LogTime {
    return { atMs: this.#ownMs() + this.#offsetMs, term: this.#term };
  }

  /** See `LogMembership`. */
  get behindMs(): number {
    const mostMs = Math.min(...this.#heard.map((each) => each.mostMs));
    return Math.max(0, mostMs - this.#offsetMs) + roundingMs;
  }

  /** Takes the reading of a batch, or of a snapshot. It counts until the leader of that term is heard itself. */
  read({ atMs, term }: LeaderTime): void {
    const offsetMs = atMs - this.#ownMs();
    const isHeard = this.#heard.length > 0;
    if (term < this.#term || (term === this.#term && (isHeard || offsetMs <= this.#offsetMs))) return;
    this.#take(offsetMs, term);
    const early = this.#early;
    if (early?.term === term) this.#hear(early);
  }

  /**
   * Takes the reading of a leader's heartbeat. It may come before the record that begins the leader's term. Until that
   * record, the ends of keys are by the clock of the leader before.
   * @param askedAtMs when this member asked the last question that the leader had read, by the own clock; undefined if
   * it had read none.
   */
  heard({ atMs, term }: LeaderTime, askedAtMs?: number): void {
    const mostMs = askedAtMs === undefined ? Number.POSITIVE_INFINITY : atMs - askedAtMs;
    const offsets = { leastMs: atMs - this.#ownMs(), mostMs };
    if (term > this.#term) this.#early = { ...offsets, term };
    if (term === this.#term) this.#hear(offsets);
  }

  /** This member leads: its own clock counts. */
  lead(term: number): void {
    this.#take(0, term);
    this.#heard = [{ leastMs: 0, mostMs: 0 }];
  }

  #hear(offsets: Offsets): void {
    this.#heard = [...this.#heard.slice(1 - keptReadings), offsets];
    this.#offsetMs = Math.max(...this.#heard.map(({ leastMs }) => leastMs));
  }

  #take(offsetMs: number, term: number): void {
    if (term !== this.#term) this.#heard = [];
    this.#offsetMs = offsetMs;
    this.#term = term;
  }
}
