/**
 * Keeps the parts of a boot consistent: Profiles, Groups and their references, of all namespaces. Each has its own
 * watch, and one watch may stall alone. Without holding, a Group that now names another Profile would boot an outdated
 * version of it, and a catch-all of one namespace would take a machine that now has its own Group in another. So while
 * a watch is not heard, changes wait, and machines get the last whole state, which is proven only up to the start of
 * the wait.
 *
 * The wait for one namespace of several is bounded, for example when its rights were withdrawn. Once changes have
 * waited for a minute in which another namespace was heard, the unheard namespaces are lost: their own machines wait,
 * but the changes of other namespaces do not. For a ConfigMap or Secret alone changes wait a second, or a minute if it
 * cannot be read. Then the shown state counts as proven only once it is read (`watch-health.ts`).
 */

import { type Clock, earliest } from "../../lib/clock.ts";
import { type ObjectName, objectKey } from "../../model/source.ts";

export interface HeldChangesOptions {
  readonly clock: Clock;
  /** Ends every wait. */
  readonly signal: AbortSignal;
  /** Monotonic: the API server's state of that time is shown; undefined before the first list. */
  readonly provenAtMs: () => number | undefined;
  /** Takes in the changes that waited. */
  readonly release: (names: readonly ObjectName[]) => void;
  /** Called when a namespace is lost, and when it is heard again. */
  readonly lostChanged: () => void;
}

/** What a watch reads. */
export interface WatchPlace {
  /** Undefined for all of them. */
  readonly namespace: string | undefined;
  /** `own`: a watch of Profiles or Groups. `reference`: a watch of their references. `read`: a read of one. */
  readonly what: "own" | "reference" | "read";
}

/** Reports one watch's state. */
export interface HeldWatch {
  /** The watch is requested, or its list is being read: nothing is heard until `opened`. */
  opening(): void;
  /** A list or the watch failed. @param isRefused davit may not read this: changes do not wait for such a reference. */
  failed(isRefused: boolean): void;
  /** The watch is open. */
  opened(): void;
  /** The watch has ended for good. */
  end(): void;
}

interface Watch extends WatchPlace {
  /** Monotonic: since when the watch is not heard. */
  deafSinceMs: number | undefined;
  /** Monotonic: since when the watch is open; short gaps while it is requested again do not matter. */
  standsSinceMs: number | undefined;
  hasFailed: boolean;
  /** Changes no longer wait for this reference, until it is heard again. */
  isGivenUp: boolean;
}

// What a watch missed arrives as soon as it is open again.
const settleMs = 1_000;
// Equal to the time for which an Install is served without a sign of life from the API server.
const lostMs = 60_000;

export class HeldChanges {
  /** Namespaces that were given up, until they are heard again. */
  readonly lost = new Set<string>();
  readonly #options: HeldChangesOptions;
  readonly #watches = new Set<Watch>();
  readonly #held = new Map<string, ObjectName>();
  #isHolding = false;
  /** Monotonic: when the holding began. */
  #beganMs = 0;
  #sinceMs: number | undefined;
  /** How long changes waited while some namespace was heard. */
  #besideMs = 0;
  /** Ends the search for lost namespaces. */
  #looking: AbortController | undefined;
  #isSettling = false;
  /** The number of the last wait: only that wait may end the holding. */
  #settling = 0;

  constructor(options: HeldChangesOptions) {
    this.#options = options;
  }

  /** Monotonic: since when the shown state may differ from the API server's; undefined while nothing waits. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  track(place: WatchPlace): HeldWatch {
    const watch: Watch = {
      ...place,
      deafSinceMs: undefined,
      standsSinceMs: undefined,
      hasFailed: false,
      isGivenUp: false,
    };
    this.#watches.add(watch);
    return {
      opening: () => this.#opening(watch),
      failed: (isRefused) => {
        if (isRefused && watch.what !== "own") this.#opened(watch);
        else this.#failed(watch);
      },
      opened: () => this.#opened(watch),
      end: () => {
        this.#watches.delete(watch);
        if (watch.deafSinceMs !== undefined) this.#endUnlessSettling();
      },
    };
  }

  /** Returns the names that may be taken in now; the others are released later. */
  offer<Name extends ObjectName>(
    names: readonly Name[],
  ): { readonly now: readonly Name[]; readonly later: readonly Name[] } {
    const { now = [], later = [] } = Object.groupBy(names, (name) => (this.#waits(name) ? "later" : "now"));
    for (const name of later) this.#held.set(objectKey(name), name);
    if (this.#isHolding) this.#sinceMs ??= this.#nowMs;
    return { now, later };
  }

  #waits({ namespace }: ObjectName): boolean {
    return this.#isHolding || this.lost.has(namespace);
  }

  #opening(watch: Watch): void {
    watch.deafSinceMs ??= this.#nowMs;
    if (!this.#isWaitedFor(watch)) return;
    this.#sinceMs = earliest(this.#options.provenAtMs(), this.#sinceMs);
    if (!this.#isHolding) [this.#beganMs, this.#besideMs] = [this.#nowMs, 0];
    this.#isHolding = true;
    if (this.#looking === undefined && (watch.hasFailed || watch.what === "read")) void this.#lookForLost();
  }

  #failed(watch: Watch): void {
    watch.standsSinceMs = undefined;
    watch.hasFailed = true;
    this.#opening(watch);
  }

  #opened(watch: Watch): void {
    const mayBeLate = watch.hasFailed || this.#nowMs - (watch.deafSinceMs ?? this.#nowMs) >= settleMs;
    watch.deafSinceMs = undefined;
    watch.hasFailed = false;
    watch.isGivenUp = false;
    watch.standsSinceMs ??= this.#nowMs;
    if (mayBeLate) void this.#settle();
    else this.#endUnlessSettling();
  }

  async #settle(): Promise<void> {
    const { clock, signal } = this.#options;
    this.#settling += 1;
    this.#isSettling = true;
    const turn = this.#settling;
    await clock.sleep(settleMs, signal);
    if (turn !== this.#settling) return;
    this.#isSettling = false;
    this.#endUnlessSettling();
  }

  #endUnlessSettling(): void {
    const { signal, release, lostChanged } = this.#options;
    const isNeeded = this.#isHolding || this.lost.size > 0;
    if (signal.aborted || this.#isSettling || !isNeeded) return;
    const found = [...this.lost].filter((namespace) => this.#isHeardSince(namespace, this.#nowMs));
    for (const namespace of found) this.lost.delete(namespace);
    this.#isHolding = this.#isOneWaitedFor;
    const released = [...this.#held].filter(([, name]) => !this.#waits(name));
    for (const [key] of released) this.#held.delete(key);
    if (released.length > 0) release(released.map(([, name]) => name));
    // The receiver of the released changes asks since when they may be true.
    if (!this.#isHolding) {
      this.#sinceMs = undefined;
      this.#looking?.abort();
      this.#looking = undefined;
    }
    if (found.length > 0) lostChanged();
  }

  async #lookForLost(): Promise<void> {
    const { clock, signal } = this.#options;
    this.#looking = new AbortController();
    const stop = AbortSignal.any([signal, this.#looking.signal]);
    while (!stop.aborted) {
      await clock.sleep(settleMs, stop);
      if (stop.aborted) return;
      const isHeard = this.#isSomebodyHeard;
      if (isHeard) this.#besideMs += settleMs;
      if (isHeard && this.#besideMs >= lostMs) this.#giveUp();
      else if (!this.#isOneWaitedFor) this.#endUnlessSettling();
    }
  }

  /** Ends the holding. Namespaces that are unheard, or were a moment ago, become lost. */
  #giveUp(): void {
    const deaf = [...this.#watches].filter((watch) => !this.#isSettled(watch));
    const own = deaf.flatMap(({ what, namespace = "" }) => (what === "own" ? [namespace] : []));
    const lost = own.filter((namespace) => namespace !== "" && !this.lost.has(namespace));
    for (const namespace of lost) this.lost.add(namespace);
    for (const watch of deaf) watch.isGivenUp = watch.what !== "own";
    if (lost.length > 0) this.#options.lostChanged();
    // Watches that keep reconnecting would delay the end for ever.
    this.#settling += 1;
    this.#isSettling = false;
    this.#endUnlessSettling();
  }

  #isSettled({ deafSinceMs, standsSinceMs = Number.POSITIVE_INFINITY }: Watch): boolean {
    return deafSinceMs === undefined && this.#nowMs - standsSinceMs >= settleMs;
  }

  /** False while the API server is away: then no namespace is lost. */
  get #isSomebodyHeard(): boolean {
    const own = Map.groupBy(
      [...this.#watches].filter(({ what }) => what === "own"),
      ({ namespace }) => namespace,
    );
    return [...own.values()].some((watches) => watches.every((watch) => this.#isSettled(watch)));
  }

  /** True when the watches of a namespace's Profiles and Groups have been open since then. */
  #isHeardSince(namespace: string, sinceMs: number): boolean {
    const own = [...this.#watches].filter((watch) => watch.what === "own" && watch.namespace === namespace);
    return own.every(({ standsSinceMs }) => (standsSinceMs ?? Infinity) <= sinceMs);
  }

  get #isOneWaitedFor(): boolean {
    return [...this.#watches].some((watch) => this.#isWaitedFor(watch));
  }

  #isWaitedFor({ namespace, what, deafSinceMs, hasFailed, isGivenUp }: Watch): boolean {
    if (deafSinceMs === undefined || isGivenUp || (namespace !== undefined && this.lost.has(namespace))) return false;
    if (what === "own" || hasFailed) return true;
    // Frequent changes of a ConfigMap must not make others wait longer.
    const beganMs = this.#isHolding ? this.#beganMs : this.#nowMs;
    return what === "reference" || this.#nowMs - Math.max(beganMs, this.#ownStandSinceMs) < settleMs;
  }

  /** Since when all Profiles and Groups outside lost namespaces are heard; Infinity while a watch is not. */
  get #ownStandSinceMs(): number {
    const own = [...this.#watches].filter(({ namespace = "", what }) => what === "own" && !this.lost.has(namespace));
    return Math.max(...own.map(({ standsSinceMs }) => standsSinceMs ?? Infinity));
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}
