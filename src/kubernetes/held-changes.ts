/**
 * Keeps the Profiles and Groups of all namespaces together. They come by watches of which one may go on while another
 * stands still: a Group that was given another Profile would then boot a version of it that no longer is, and a
 * catch-all of one namespace would take a machine that by now has a Group of its own in another. So while one of them is
 * not heard, changes wait, and machines get the last state that was whole.
 *
 * They do not wait for ever for one namespace of several, such as one whose rights were withdrawn. A namespace is lost
 * when it was not heard for a minute in which another one was: then its own machines wait, and changes of the others do
 * not.
 */

import type { Clock } from "../lib/clock.ts";
import { type OwnName, objectKey } from "../model/source.ts";

export interface HeldChangesOptions {
  readonly clock: Clock;
  /** Whose Profiles and Groups are watched. */
  readonly watches: readonly WatchPlace[];
  /** Ends every wait. */
  readonly signal: AbortSignal;
  /** Takes up what waited. */
  readonly release: (names: readonly OwnName[]) => void;
  /** Told when a namespace is lost, and when it is found. */
  readonly lostChanged: () => void;
}

/** A watch: its name, and the namespace that it reads; undefined for all of them. */
export interface WatchPlace {
  readonly key: string;
  readonly namespace: string | undefined;
}

// A watch that stands again first tells what was missed, at once.
const settleMs = 1_000;
// As long as an Install is served without a sign of the API server.
const lostMs = 60_000;

export class HeldChanges {
  /** Namespaces that were given up, until they are heard again. */
  readonly lost = new Set<string>();
  readonly #options: HeldChangesOptions;
  /** Watches that failed, and since when. */
  readonly #unheard = new Map<string, number>();
  /** Watches that stand, and since when. */
  readonly #heard = new Map<string, number>();
  readonly #held = new Map<string, OwnName>();
  #isHolding = false;
  #sinceMs: number | undefined;
  #isLooking = false;
  /** Of the last wait that has begun: only that one may end the holding. */
  #settling = 0;

  constructor(options: HeldChangesOptions) {
    this.#options = options;
  }

  /** Monotonic: since when a change waits of a namespace that was not given up; undefined while none does. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /** A list, or the watch of this name, failed. */
  failed(watch: string): void {
    this.#heard.delete(watch);
    if (!this.#unheard.has(watch)) this.#unheard.set(watch, this.#nowMs);
    if (this.#isLost(watch)) return;
    this.#isHolding = true;
    if (!this.#isLooking) void this.#lookForLost();
  }

  /** It stands. */
  heard(watch: string): void {
    this.#unheard.delete(watch);
    if (!this.#heard.has(watch)) this.#heard.set(watch, this.#nowMs);
    if (this.#isHolding || this.lost.size > 0) void this.#settle();
  }

  /** Tells which names may be taken up now; the others are released later. */
  offer(names: readonly OwnName[]): { readonly now: readonly OwnName[]; readonly later: readonly OwnName[] } {
    const { now = [], later = [] } = Object.groupBy(names, (name) => (this.#waits(name) ? "later" : "now"));
    for (const name of later) this.#held.set(objectKey(name), name);
    if (later.some(({ namespace }) => !this.lost.has(namespace))) this.#sinceMs ??= this.#nowMs;
    return { now, later };
  }

  #waits({ namespace }: OwnName): boolean {
    return this.#isHolding || this.lost.has(namespace);
  }

  async #settle(): Promise<void> {
    const { clock, signal, release, lostChanged } = this.#options;
    this.#settling += 1;
    const turn = this.#settling;
    await clock.sleep(settleMs, signal);
    if (signal.aborted || turn !== this.#settling) return;
    const found = [...this.lost].filter((namespace) => this.#isHeardSince(namespace, this.#nowMs));
    for (const namespace of found) this.lost.delete(namespace);
    this.#isHolding = [...this.#unheard.keys()].some((watch) => !this.#isLost(watch));
    const released = [...this.#held].filter(([, name]) => !this.#waits(name));
    for (const [key] of released) this.#held.delete(key);
    if (!this.#isHolding) this.#sinceMs = undefined;
    if (released.length > 0) release(released.map(([, name]) => name));
    if (found.length > 0) lostChanged();
  }

  async #lookForLost(): Promise<void> {
    const { clock, signal, lostChanged } = this.#options;
    this.#isLooking = true;
    while (this.#isHolding && !signal.aborted) {
      await clock.sleep(settleMs, signal);
      const lost = signal.aborted ? [] : this.#newlyLost();
      for (const namespace of lost) this.lost.add(namespace);
      if (lost.length === 0) continue;
      lostChanged();
      void this.#settle();
    }
    this.#isLooking = false;
  }

  /** None while nobody is heard: it is the API server then that is away. */
  #newlyLost(): readonly string[] {
    const sinceMs = this.#nowMs - lostMs;
    const namespaces = new Set(this.#options.watches.flatMap(({ namespace }) => namespace ?? []));
    if (![...namespaces].some((namespace) => this.#isHeardSince(namespace, sinceMs))) return [];
    const due = this.#options.watches.filter(({ key }) => (this.#unheard.get(key) ?? Infinity) <= sinceMs);
    return due.flatMap(({ namespace }) => (namespace === undefined || this.lost.has(namespace) ? [] : [namespace]));
  }

  /** True when all watches of a namespace have stood from then on. */
  #isHeardSince(namespace: string, sinceMs: number): boolean {
    const own = this.#options.watches.filter((watch) => watch.namespace === namespace);
    return own.every(({ key }) => (this.#heard.get(key) ?? Infinity) <= sinceMs);
  }

  #isLost(watch: string): boolean {
    const place = this.#options.watches.find(({ key }) => key === watch);
    return place?.namespace !== undefined && this.lost.has(place.namespace);
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}
