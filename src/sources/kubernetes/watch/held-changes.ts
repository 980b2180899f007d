/**
 * Holds changes back, so that machines never get a mix of old and new objects. Profiles, Groups and their references
 * have separate watches, in each watched namespace, and one watch may stall alone. Without holding, this could happen:
 *
 * - A Group now names another Profile, but machines boot an outdated version of that Profile.
 * - A machine has a new Group in one namespace, but the catch-all of another namespace takes the machine.
 *
 * So while a watch is not heard, changes wait. Machines get the last complete state, which then counts as proven only
 * up to the start of the wait.
 *
 * The wait for one of several namespaces is limited: davit may have lost its rights there. When changes have waited for
 * a minute in which another namespace was heard, the unheard namespaces are lost. Their own machines wait, but the
 * changes of other namespaces no longer do.
 *
 * When davit waits only for a ConfigMap or Secret, the wait is limited, too: to one second for a read of a ConfigMap,
 * and to a minute after a read or a watch has failed. Then the other changes take effect. But until davit has read the
 * ConfigMap or Secret, no later state counts as proven (`ClusterSource.provenAtMs`).
 */

import { type Clock, earliest } from "../../../lib/clock.ts";
import { type ObjectName, objectKey } from "../../../model/objects/source.ts";

interface HeldChangesOptions {
  readonly clock: Clock;
  /** Ends every wait. */
  readonly signal: AbortSignal;
  /** Monotonic: the view shows the API server's state at this time, or a later one. Undefined before the first list. */
  readonly provenAtMs: () => number | undefined;
  /** Called with the names whose changes no longer wait. */
  readonly release: (names: readonly ObjectName[]) => void;
  /** Called when a namespace is lost, and when it is heard again. */
  readonly lostChanged: () => void;
}

/** What a watch, or a single read, is for. */
interface WatchPlace {
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined;
  /**
   * `own`: a watch of Profiles or Groups. `reference`: a watch of ConfigMaps or Secrets. `read`: a read of a ConfigMap.
   */
  readonly what: "own" | "reference" | "read";
}

/** The functions by which a watch reports its state. */
export interface HeldWatch {
  /** A list or the watch is requested. Until `opened`, changes may be missing. */
  opening(): void;
  /**
   * A list or the watch failed.
   * @param isRefused true if davit has no right to read this resource. Changes then do not wait for this watch, unless
   * it is of Profiles or Groups.
   */
  failed(isRefused: boolean): void;
  /** The watch is open. */
  opened(): void;
  /** The watch has ended for good. */
  end(): void;
}

interface Watch extends WatchPlace {
  /** Monotonic: since when the watch is not heard; undefined while it is open. */
  deafSinceMs: number | undefined;
  /**
   * Monotonic: when the watch was first opened after its last failure. A watch that ends normally and is requested
   * again keeps this time.
   */
  standsSinceMs: number | undefined;
  hasFailed: boolean;
  /**
   * True when davit has waited too long for this watch or read of ConfigMaps or Secrets. Changes do not wait for it
   * before it has been open again.
   */
  isGivenUp: boolean;
}

// How long davit waits for the changes that a watch missed. They arrive as soon as the watch is open again.
const pauseMs = 1_000;
// Equal to the default of --install-max-source-age: davit serves an Install for this long without a sign of life from
// the API server.
const lostMs = 60_000;

export class HeldChanges {
  /** The lost namespaces. A namespace is removed when it is heard again. */
  readonly lost = new Set<string>();
  readonly #options: HeldChangesOptions;
  readonly #watches = new Set<Watch>();
  readonly #held = new Map<string, ObjectName>();
  #isHolding = false;
  /** Monotonic: when the holding began. */
  #beganMs = 0;
  #sinceMs: number | undefined;
  /** For how many milliseconds of the present holding at least one namespace was heard. */
  #besideMs = 0;
  /** Ends the search for lost namespaces. */
  #looking: AbortController | undefined;
  #isPaused = false;
  /** Counts the calls of `#pause`. Only the last one may end the holding. */
  #pauses = 0;

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
        if (watch.deafSinceMs !== undefined) this.#endUnlessPaused();
      },
    };
  }

  /** Divides names into those to take in now and those that `release` gets later. */
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
    const mayBeLate = watch.hasFailed || this.#nowMs - (watch.deafSinceMs ?? this.#nowMs) >= pauseMs;
    watch.deafSinceMs = undefined;
    watch.hasFailed = false;
    watch.isGivenUp = false;
    watch.standsSinceMs ??= this.#nowMs;
    if (mayBeLate) void this.#pause();
    else this.#endUnlessPaused();
  }

  async #pause(): Promise<void> {
    const { clock, signal } = this.#options;
    this.#pauses += 1;
    this.#isPaused = true;
    const turn = this.#pauses;
    await clock.sleep(pauseMs, signal);
    if (turn !== this.#pauses) return;
    this.#isPaused = false;
    this.#endUnlessPaused();
  }

  #endUnlessPaused(): void {
    const { signal, release, lostChanged } = this.#options;
    const isNeeded = this.#isHolding || this.lost.size > 0;
    if (signal.aborted || this.#isPaused || !isNeeded) return;
    const found = [...this.lost].filter((namespace) => this.#isHeardSince(namespace, this.#nowMs));
    for (const namespace of found) this.lost.delete(namespace);
    this.#isHolding = this.#isOneWaitedFor;
    const released = [...this.#held].filter(([, name]) => !this.#waits(name));
    for (const [key] of released) this.#held.delete(key);
    if (released.length > 0) release(released.map(([, name]) => name));
    // Cleared only after `release`, because the receiver of the changes reads `sinceMs`.
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
      await clock.sleep(pauseMs, stop);
      if (stop.aborted) return;
      const isHeard = this.#isSomebodyHeard;
      if (isHeard) this.#besideMs += pauseMs;
      if (isHeard && this.#besideMs >= lostMs) this.#giveUp();
      else if (!this.#isOneWaitedFor) this.#endUnlessPaused();
    }
  }

  /** Ends the holding. Namespaces that are not heard, or were not heard a moment ago, become lost. */
  #giveUp(): void {
    const deaf = [...this.#watches].filter((watch) => !this.#isCaughtUp(watch));
    const own = deaf.flatMap(({ what, namespace = "" }) => (what === "own" ? [namespace] : []));
    const lost = own.filter((namespace) => namespace !== "" && !this.lost.has(namespace));
    for (const namespace of lost) this.lost.add(namespace);
    for (const watch of deaf) watch.isGivenUp = watch.what !== "own";
    if (lost.length > 0) this.#options.lostChanged();
    // This cancels a running `#pause`. Watches that reconnect again and again would otherwise delay the end for ever.
    this.#pauses += 1;
    this.#isPaused = false;
    this.#endUnlessPaused();
  }

  #isCaughtUp({ deafSinceMs, standsSinceMs = Number.POSITIVE_INFINITY }: Watch): boolean {
    return deafSinceMs === undefined && this.#nowMs - standsSinceMs >= pauseMs;
  }

  /** True when at least one namespace is heard. If none is, the API server itself is away, and no namespace is lost. */
  get #isSomebodyHeard(): boolean {
    const own = Map.groupBy(
      [...this.#watches].filter(({ what }) => what === "own"),
      ({ namespace }) => namespace,
    );
    return [...own.values()].some((watches) => watches.every((watch) => this.#isCaughtUp(watch)));
  }

  /** True when the watches of a namespace's Profiles and Groups have been open since `sinceMs`. */
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
    // A read of a ConfigMap delays changes for one second at most. The second begins when the holding begins, or later,
    // when all watches of Profiles and Groups are open. Without this limit, a ConfigMap that often changes would delay
    // all changes.
    const beganMs = this.#isHolding ? this.#beganMs : this.#nowMs;
    return what === "reference" || this.#nowMs - Math.max(beganMs, this.#ownStandSinceMs) < pauseMs;
  }

  /**
   * Monotonic: since when all watches of Profiles and Groups outside lost namespaces are open; Infinity if one is not.
   */
  get #ownStandSinceMs(): number {
    const own = [...this.#watches].filter(({ namespace = "", what }) => what === "own" && !this.lost.has(namespace));
    return Math.max(...own.map(({ standsSinceMs }) => standsSinceMs ?? Infinity));
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}
