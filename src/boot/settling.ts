/**
 * Decides whether more objects may still arrive. A cluster or directory that is being filled may have the catch-all
 * before the Groups that name machines. So no machine gets an Install by `matchAll` until the objects have settled.
 */

import type { Clock } from "../lib/clock.ts";
import type { SyncedDocument } from "../model/documents.ts";

// kubectl creates about 50 objects a second, so a rack of machines is there by then.
const settleMs = 10_000;

export class Settling {
  readonly #clock: Pick<Clock, "monotonicMs"> | undefined;
  #isComplete = false;
  /** When the settling time began, monotonic; undefined before the first complete list and after that time. */
  #sinceMs: number | undefined;

  /** @param clock undefined if no objects arrive later. */
  constructor(clock: Pick<Clock, "monotonicMs"> | undefined) {
    this.#clock = clock;
  }

  /** Starts, or restarts, the settling time: the first complete list is stored. */
  begin(): void {
    this.#sinceMs = this.#clock?.monotonicMs();
  }

  /** Reads the store's sync state. */
  note(synced: SyncedDocument | undefined): void {
    const isComplete = synced?.complete === true;
    if (isComplete && !this.#isComplete) this.begin();
    this.#isComplete ||= isComplete;
  }

  isUnderWay(): boolean {
    if (this.#sinceMs === undefined || this.#clock === undefined) return false;
    if (this.#clock.monotonicMs() - this.#sinceMs < settleMs) return true;
    this.#sinceMs = undefined;
    return false;
  }
}
