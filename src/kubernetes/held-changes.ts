/**
 * Keeps the Profiles and Groups of all namespaces together. They come by watches of which one may go on while another
 * stands still: a Group that was given another Profile would then boot a version of it that no longer is, and a
 * catch-all of one namespace would take a machine that by now has a Group of its own in another. So while one of them is
 * not heard, all changes wait, and machines get the last state that was whole.
 */

import type { Clock } from "../lib/clock.ts";
import type { OwnName } from "../model/source.ts";

export interface HeldChangesOptions {
  readonly clock: Clock;
  /** Ends every wait. */
  readonly signal: AbortSignal;
  /** Takes up what waited. */
  readonly release: (names: readonly OwnName[]) => void;
}

// A watch that stands again first tells what was missed, at once.
const settleMs = 1_000;

export class HeldChanges {
  readonly #options: HeldChangesOptions;
  readonly #unheard = new Set<string>();
  readonly #held = new Map<string, OwnName>();
  #isHolding = false;
  /** Of the last wait that has begun: only that one may end the holding. */
  #settling = 0;

  constructor(options: HeldChangesOptions) {
    this.#options = options;
  }

  /** A list, or the watch of this name, failed. */
  failed(watch: string): void {
    this.#unheard.add(watch);
    this.#isHolding = true;
  }

  /** It stands. */
  heard(watch: string): void {
    this.#unheard.delete(watch);
    if (this.#isHolding && this.#unheard.size === 0) void this.#settle();
  }

  /** @returns the names that may be taken up now; the others are released later. */
  offer(names: readonly OwnName[]): readonly OwnName[] {
    if (!this.#isHolding) return names;
    for (const name of names) this.#held.set(`${name.kind}/${name.namespace}/${name.name}`, name);
    return [];
  }

  async #settle(): Promise<void> {
    const { clock, signal, release } = this.#options;
    this.#settling += 1;
    const turn = this.#settling;
    await clock.sleep(settleMs, signal);
    if (signal.aborted || turn !== this.#settling || this.#unheard.size > 0) return;
    this.#isHolding = false;
    const names = [...this.#held.values()];
    this.#held.clear();
    release(names);
  }
}
