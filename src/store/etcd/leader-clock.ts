/**
 * The leader's clock, as this member knows it. Members stamp their records with it, so a member whose own clock is
 * wrong ends no key early or late.
 *
 * Each batch and each heartbeat of the leader carries a reading. It is never ahead of the leader's clock when it
 * arrives, but late by its time on the way. So the best of the last heartbeats counts: after a slow one, the keys that
 * clients write at this member would end early.
 */

import type { LogTime } from "../core/log-port.ts";
import type { LeaderTime } from "./batch-frame.ts";

// Half a minute of heartbeats: two clocks drift apart by a millisecond or so in this time.
const keptReadings = 16;

export class LeaderClock {
  readonly #ownMs: () => number;
  /** Added to the own clock. */
  #offsetMs = 0;
  #term = 0;
  #isExact = false;
  /** The offsets of the last heartbeats of the term. */
  #heard: readonly number[] = [];
  /** The heartbeat of a leader whose term has not begun here: the offset, and the term. */
  #early: { readonly offsetMs: number; readonly term: number } | undefined;

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

  /** Takes the reading of a batch, or of a snapshot. It counts until the leader of that term is heard itself. */
  read({ atMs, term }: LeaderTime): void {
    const offsetMs = atMs - this.#ownMs();
    if (term < this.#term || (term === this.#term && (this.#isExact || offsetMs <= this.#offsetMs))) return;
    this.#take(offsetMs, term);
    const early = this.#early;
    if (early?.term !== term) return;
    this.#take(early.offsetMs, term);
    this.#heard = [early.offsetMs];
    this.#isExact = true;
  }

  /**
   * Takes the reading of a leader's heartbeat. It may come before the record that begins the leader's term. Until that
   * record, the ends of keys are by the clock of the leader before.
   */
  heard({ atMs, term }: LeaderTime): void {
    const offsetMs = atMs - this.#ownMs();
    if (term > this.#term) this.#early = { offsetMs, term };
    if (term !== this.#term) return;
    this.#heard = [...this.#heard.slice(1 - keptReadings), offsetMs];
    this.#take(Math.max(...this.#heard), term);
    this.#isExact = true;
  }

  /** This member leads: its own clock counts. */
  lead(term: number): void {
    this.#take(0, term);
    this.#isExact = true;
  }

  #take(offsetMs: number, term: number): void {
    if (term !== this.#term) {
      this.#isExact = false;
      this.#heard = [];
    }
    this.#offsetMs = offsetMs;
    this.#term = term;
  }
}
