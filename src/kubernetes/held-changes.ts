/**
 * Keeps the Profiles and Groups of a namespace together. They come by two watches, of which one may go on while the
 * other stands still: a Group that was given another Profile would then boot a version of it that no longer is. So
 * while one of the two is not heard, changes of both wait, and machines get the last state that was whole.
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
  readonly #unheard = new Set<OwnName["kind"]>();
  readonly #held = new Map<string, OwnName>();
  #isHolding = false;
  /** Of the last wait that has begun: only that one may end the holding. */
  #settling = 0;

  constructor(options: HeldChangesOptions) {
    this.#options = options;
  }

  /** A list or watch of this kind failed. */
  failed(kind: OwnName["kind"]): void {
    this.#unheard.add(kind);
    this.#isHolding = true;
  }

  /** Its watch stands. */
  heard(kind: OwnName["kind"]): void {
    this.#unheard.delete(kind);
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
