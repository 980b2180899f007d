/**
 * Delays grants until everything older than them is in the view. Each kind has a watch of its own, and one may bring a
 * grant before another one brings an older change: without a delay, a machine would install by the older object. So a
 * new or changed grant waits until the API server proves every watch for a time after the grant's arrival.
 */

import type { Clock } from "../../../lib/clock.ts";
import { type ObjectName, type OwnName, objectKey } from "../../../model/objects/source.ts";
import { isOlder } from "../watch/seen-versions.ts";
import type { RunningWatch } from "../watch/watch-context.ts";
import type { Judgement } from "./judge.ts";

interface LateGrantsOptions {
  readonly clock: Clock;
  /** Ends every wait. */
  readonly signal: AbortSignal;
  /** Asks the API server for a proof of every watch. */
  readonly prove: () => Promise<unknown>;
  /** Monotonic: the view shows the API server's state at this time, or a later one. */
  readonly provenAtMs: () => number | undefined;
  /** Called with the names that no longer wait. */
  readonly release: (names: readonly OwnName[]) => void;
}

// Changes that are on their way while davit asks make a proof fail. They arrive soon.
const retryMs = 200;

export class LateGrants {
  readonly #options: LateGrantsOptions;
  readonly #waiting = new Map<string, { readonly name: OwnName; readonly sinceMs: number }>();
  #isAsking = false;

  constructor(options: LateGrantsOptions) {
    this.#options = options;
  }

  /** True if no grant waits. */
  get isIdle(): boolean {
    return this.#waiting.size === 0;
  }

  /** Delays the newest versions of these objects. A version that arrives later waits anew. */
  delay(names: readonly OwnName[]): void {
    const sinceMs = this.#options.clock.monotonicMs();
    for (const name of names) this.#waiting.set(objectKey(name), { name, sinceMs });
    if (!this.#isAsking && names.length > 0) void this.#ask();
  }

  /** Ends the delay of an object whose newest version needs none. */
  forget(name: ObjectName): void {
    this.#waiting.delete(objectKey(name));
  }

  async #ask(): Promise<void> {
    const { clock, signal, prove, provenAtMs, release } = this.#options;
    this.#isAsking = true;
    while (this.#waiting.size > 0 && !signal.aborted) {
      await prove();
      const untilMs = provenAtMs() ?? Number.NEGATIVE_INFINITY;
      const due = [...this.#waiting.values()].filter(({ sinceMs }) => sinceMs <= untilMs).map(({ name }) => name);
      for (const name of due) this.forget(name);
      if (due.length === 0) await clock.sleep(retryMs, signal);
      else if (!signal.aborted) release(due);
    }
    this.#isAsking = false;
  }
}

/**
 * Returns the objects with a grant that are newer than one of the watches. Their versions are of one etcd, so davit can
 * compare them.
 */
export function newerGrants(
  own: readonly RunningWatch<Judgement>["watch"][],
  all: readonly { readonly newestVersion: string | undefined }[],
): readonly OwnName[] {
  return own.flatMap((watch) =>
    [...watch.all()].flatMap(({ namespace, name, resourceVersion, value: { object } }) => {
      if ((object?.kind !== "Group" && object?.kind !== "Machine") || object.spec.install === undefined) return [];
      const isNewer = all.some(({ newestVersion = "0" }) => isOlder(newestVersion, resourceVersion));
      return isNewer ? [{ kind: object.kind, namespace, name }] : [];
    }),
  );
}
