/**
 * Records which claims this process saw being logged, and when by the monotonic clock. It repeats the script of no
 * other claim: the wall clock may have been set back while no davit ran, and a script would be repeated long after the
 * install. Another member may still repeat such a script, so the machine waits until the script window is over.
 */

import type { Clock } from "../../lib/clock.ts";
import { type LedgerEntry, repeatMs } from "../../model/permits/permit.ts";
import type { KnownLedger } from "./known-ledger.ts";

interface SeenClaim {
  readonly claimedAtMs: number;
  /** False if the claim was already there when this process learned of it. */
  readonly isWitnessed: boolean;
  /** The monotonic time at which this process learned of it. */
  readonly learnedAtMs: number;
}

export class WitnessedClaims {
  readonly #known: KnownLedger;
  readonly #clock: Clock;
  #claims = new Map<string, SeenClaim>();

  constructor(known: KnownLedger, clock: Clock) {
    this.#known = known;
    this.#clock = clock;
    known.onChange((entries) => {
      if (entries === undefined) this.#replace();
      else for (const { id } of entries) this.#update(id);
    });
  }

  /** Whether the script of a claim may be repeated: `maybe` if only another member can know it. */
  isRepeatable({ id, claimedAtMs }: LedgerEntry): boolean | "maybe" {
    const claim = this.#claims.get(id);
    if (claim === undefined || claim.claimedAtMs !== claimedAtMs) return false;
    const isOver = this.#clock.monotonicMs() - claim.learnedAtMs >= repeatMs;
    if (isOver) return false;
    return claim.isWitnessed || "maybe";
  }

  #update(id: string): void {
    const entry = this.#known.underWay.get(id);
    if (entry?.state !== "Claimed") this.#claims.delete(id);
    else if (this.#claims.get(id)?.claimedAtMs !== entry.claimedAtMs) this.#claims.set(id, this.#seen(entry, true));
  }

  #replace(): void {
    const former = this.#claims;
    this.#claims = new Map();
    for (const entry of this.#known.underWay.values()) {
      const claim = former.get(entry.id);
      const isSame = claim !== undefined && claim.claimedAtMs === entry.claimedAtMs;
      if (entry.state === "Claimed") this.#claims.set(entry.id, isSame ? claim : this.#seen(entry, false));
    }
  }

  #seen({ claimedAtMs }: LedgerEntry, isWitnessed: boolean): SeenClaim {
    return { claimedAtMs, isWitnessed, learnedAtMs: this.#clock.monotonicMs() };
  }
}
