/**
 * Keeps what machines get together: Profiles, Groups and what they refer to, of all namespaces. They come by watches of
 * which one may go on while another stands still: a Group that was given another Profile would then boot a version of it
 * that no longer is, and a catch-all of one namespace would take a machine that by now has a Group of its own in another.
 * So while one of them is not heard, changes wait, and machines get the last state that was whole; no later moment is
 * proven than the one in which that began.
 *
 * They do not wait for ever for one namespace of several, such as one whose rights were withdrawn. A namespace is lost
 * when it was not heard for a minute in which another one was: then its own machines wait, and changes of the others do
 * not. For a ConfigMap or Secret alone changes wait a second, and a minute where it cannot be read; what is shown then is
 * not proven until it is read (`watch-health.ts`).
 */

import type { Clock } from "../lib/clock.ts";
import { type ObjectName, objectKey } from "../model/source.ts";

export interface HeldChangesOptions {
  readonly clock: Clock;
  /** Ends every wait. */
  readonly signal: AbortSignal;
  /** Monotonic: what the API server had then is shown; undefined before the first list. */
  readonly provenAtMs: () => number | undefined;
  /** Takes up what waited. */
  readonly release: (names: readonly ObjectName[]) => void;
  /** Called when a namespace is lost, and when it is found. */
  readonly lostChanged: () => void;
}

/** What is heard, or not. */
export interface WatchPlace {
  /** Undefined for all of them. */
  readonly namespace: string | undefined;
  /** A watch of Profiles or Groups, one of what they refer to, or one read of such a thing. */
  readonly what: "own" | "reference" | "read";
}

/** One watch's part in it. */
export interface HeldWatch {
  /** It is asked for, or what it reads is listed: until `opened` nothing is heard. */
  opening(): void;
  /** A list or the watch failed. @param isRefused davit may not read this: nobody waits for a reference then. */
  failed(isRefused: boolean): void;
  /** It stands. */
  opened(): void;
  /** The watch is no more. */
  end(): void;
}

interface Watch extends WatchPlace {
  /** Monotonic: since when it is not heard. */
  deafSinceMs: number | undefined;
  /** Monotonic: since when it stands, but for the moments in which it is asked for again. */
  standsSinceMs: number | undefined;
  hasFailed: boolean;
}

// A watch that stands again tells at once what was missed.
const settleMs = 1_000;
// As long as an Install is served without a sign of the API server.
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
  /** Ends the look for what is lost. */
  #looking: AbortController | undefined;
  #isSettling = false;
  /** Of the last wait that has begun: only that one may end the holding. */
  #settling = 0;

  constructor(options: HeldChangesOptions) {
    this.#options = options;
  }

  /** Monotonic: since when what is shown may be another state than the API server's; undefined while nothing waits. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  track(place: WatchPlace): HeldWatch {
    const watch: Watch = { ...place, deafSinceMs: undefined, standsSinceMs: undefined, hasFailed: false };
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

  /** Says which names may be taken up now; the others are released later. */
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
    const provenAtMs = this.#options.provenAtMs();
    if (provenAtMs !== undefined) this.#sinceMs = Math.min(provenAtMs, this.#sinceMs ?? provenAtMs);
    if (!this.#isHolding) this.#beganMs = this.#nowMs;
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
    // Whoever takes them up asks since when they may be so.
    if (!this.#isHolding) {
      this.#sinceMs = undefined;
      this.#looking?.abort();
      this.#looking = undefined;
    }
    if (found.length > 0) lostChanged();
  }

  async #lookForLost(): Promise<void> {
    const { clock, signal, lostChanged } = this.#options;
    this.#looking = new AbortController();
    const stop = AbortSignal.any([signal, this.#looking.signal]);
    while (!stop.aborted) {
      await clock.sleep(settleMs, stop);
      if (stop.aborted) return;
      const lost = this.#newlyLost();
      for (const namespace of lost) this.lost.add(namespace);
      if (lost.length > 0) lostChanged();
      if (!this.#isOneWaitedFor) this.#endUnlessSettling();
    }
  }

  /** None while nobody is heard: it is the API server then that is away. */
  #newlyLost(): readonly string[] {
    const sinceMs = this.#nowMs - lostMs;
    const own = [...this.#watches].filter(({ what }) => what === "own");
    const namespaces = new Set(own.flatMap(({ namespace }) => namespace ?? []));
    if (![...namespaces].some((namespace) => this.#isHeardSince(namespace, sinceMs))) return [];
    const due = own.filter(({ deafSinceMs }) => (deafSinceMs ?? Infinity) <= sinceMs);
    return due.flatMap(({ namespace }) => (namespace === undefined || this.lost.has(namespace) ? [] : [namespace]));
  }

  /** True when the watches of a namespace's Profiles and Groups have stood from then on. */
  #isHeardSince(namespace: string, sinceMs: number): boolean {
    const own = [...this.#watches].filter((watch) => watch.what === "own" && watch.namespace === namespace);
    return own.every(({ standsSinceMs }) => (standsSinceMs ?? Infinity) <= sinceMs);
  }

  get #isOneWaitedFor(): boolean {
    return [...this.#watches].some((watch) => this.#isWaitedFor(watch));
  }

  #isWaitedFor({ namespace, what, deafSinceMs, hasFailed }: Watch): boolean {
    if (deafSinceMs === undefined || (namespace !== undefined && this.lost.has(namespace))) return false;
    if (what === "own") return true;
    if (hasFailed) return this.#nowMs - Math.max(deafSinceMs, this.#ownStandSinceMs) < lostMs;
    // Whoever changes a ConfigMap all the time has nobody else wait for longer.
    const beganMs = this.#isHolding ? this.#beganMs : this.#nowMs;
    return what === "reference" || this.#nowMs - Math.max(beganMs, this.#ownStandSinceMs) < settleMs;
  }

  /** Since when all Profiles and Groups are heard that are not lost; Infinity while one is not. */
  get #ownStandSinceMs(): number {
    const own = [...this.#watches].filter(({ namespace = "", what }) => what === "own" && !this.lost.has(namespace));
    return Math.max(...own.map(({ standsSinceMs }) => standsSinceMs ?? Infinity));
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}
