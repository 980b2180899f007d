/** Whether the served documents are what the objects say now: the age of the last proof, and what may follow soon. */

import type { Clock } from "../../lib/clock.ts";
import type { SyncedDocument } from "../../model/objects/documents.ts";

interface FreshnessOptions {
  readonly clock: Pick<Clock, "monotonicMs">;
  /** The greatest age of a proof that allows an `Install`; 0 for no limit. */
  readonly installMaxSourceAgeMs: number;
}

/** `unconfirmed`: no proof since the start. `stale`: the last proof is too old. */
type Staleness = "unconfirmed" | "stale";

/**
 * Measures the age of the last proof that the served documents match the objects. The check of this age costs only a
 * subtraction, because each request for a Profile that installs makes it.
 */
export class Freshness {
  readonly #options: FreshnessOptions;
  readonly #startMs: number;
  #provenAtMs: () => number | undefined = () => undefined;

  constructor(options: FreshnessOptions) {
    this.#options = options;
    this.#startMs = options.clock.monotonicMs();
  }

  /**
   * Sets the function that returns the time of the last proof. Before this call, nothing is proven.
   * @param provenAtMs returns the time on the monotonic clock; undefined before the first proof.
   */
  provenBy(provenAtMs: () => number | undefined): void {
    this.#provenAtMs = provenAtMs;
  }

  /** When the last proof was, on the monotonic clock; undefined before the first one. */
  get provenAtMs(): number | undefined {
    return this.#provenAtMs();
  }

  /** The time since the last proof. Without a proof, the time since the start. */
  get ageSeconds(): number {
    return (this.#options.clock.monotonicMs() - (this.#provenAtMs() ?? this.#startMs)) / 1_000;
  }

  /** Why the last proof does not allow an `Install`; undefined if it does. */
  get staleness(): Staleness | undefined {
    const { clock, installMaxSourceAgeMs } = this.#options;
    if (installMaxSourceAgeMs === 0) return undefined;
    const provenAtMs = this.#provenAtMs();
    if (provenAtMs === undefined) return "unconfirmed";
    return clock.monotonicMs() - provenAtMs > installMaxSourceAgeMs ? "stale" : undefined;
  }
}

// kubectl creates about 50 objects a second, so this is enough for a rack of machines.
const settleMs = 10_000;

/**
 * Decides whether more objects can be expected soon. While users fill a cluster or a directory, the catch-all may exist
 * before the Groups that name machines. So no catch-all installs a machine until the objects have settled.
 */
export class Settling {
  readonly #clock: Pick<Clock, "monotonicMs"> | undefined;
  /** The last complete sync that `note` got. */
  #sync: string | undefined;
  /**
   * When the settling time began, on the monotonic clock. Undefined before the first complete list, and after the
   * settling time.
   */
  #sinceMs: number | undefined;

  /** @param clock undefined if all objects are present from the start: then nothing has to settle. */
  constructor(clock: Pick<Clock, "monotonicMs"> | undefined) {
    this.#clock = clock;
  }

  /** Starts the settling time, or restarts it: a first complete list is in the store. */
  begin(): void {
    this.#sinceMs = this.#clock?.monotonicMs();
  }

  /** When the settling time began; undefined before and after it. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /** Takes over the settling time of an index that has had the same documents for longer. */
  takeOver(sinceMs: number | undefined): void {
    this.#sinceMs = sinceMs;
  }

  /**
   * Notes the store's sync document. Each new complete sync starts the settling time: `davit serve` has restarted, or a
   * follower got a new store.
   */
  note(synced: SyncedDocument | undefined): void {
    if (synced?.complete !== true) return;
    const sync = `${synced.at} ${synced.revision}`;
    if (sync !== this.#sync) this.begin();
    this.#sync = sync;
  }

  /** True during the settling time. */
  isUnderWay(): boolean {
    if (this.#sinceMs === undefined || this.#clock === undefined) return false;
    if (this.#clock.monotonicMs() - this.#sinceMs < settleMs) return true;
    this.#sinceMs = undefined;
    return false;
  }
}
