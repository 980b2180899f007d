/**
 * Decides whether more objects can be expected soon. While users fill a cluster or a directory, the catch-all may exist
 * before the Groups that name machines. So no catch-all installs a machine until the objects have settled.
 */

import type { Clock } from "../../lib/clock.ts";
import type { SyncedDocument } from "../../model/objects/documents.ts";

// kubectl creates about 50 objects a second, so this is enough for a rack of machines.
const settleMs = 10_000;

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
