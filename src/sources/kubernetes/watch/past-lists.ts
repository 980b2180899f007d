/**
 * Decides whether a watch believes a list that is older than what davit has seen. A cache on the way may show the past,
 * and then machines would get an older boot. But the API server may also have gone back for good, because its etcd was
 * restored. davit cannot distinguish the two at once, so the past must last for a while (decision 0023).
 */

import type { Clock } from "../../../lib/clock.ts";
import type { Log } from "../../../lib/log.ts";
import type { Metrics } from "../../../lib/metrics/metrics.ts";
import { isOlder } from "./gaps.ts";
import type { SeenVersions } from "./seen-versions.ts";
import { WatchFailure } from "./watch-failure.ts";
import type { WatchTarget } from "./watch-target.ts";

export interface PastListsOptions {
  readonly seen: SeenVersions;
  readonly target: WatchTarget;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "watchRestarts">;
  readonly limits: {
    /** davit believes an older list once all lists were older for this long, in milliseconds. 0 by default. */
    readonly pastMs?: number;
  };
}

const pastText =
  "The API server shows an older state than before: a cache on the way shows the past, or its etcd was restored";

export class PastLists {
  readonly #options: PastListsOptions;
  /** A monotonic time: since then, each list is older than what davit has seen. */
  #sinceMs: number | undefined;

  constructor(options: PastListsOptions) {
    this.#options = options;
  }

  /** Read it before a list: another watch may see a later version during the list. */
  get newest(): string | undefined {
    const { seen, target } = this.#options;
    return seen.of(target.resource.plural);
  }

  /**
   * @param version of the list.
   * @param newest `newest` as it was before the list.
   * @throws {WatchFailure} rewound, for an older list that davit does not believe.
   */
  assertBelieved(version: string, newest: string | undefined): void {
    const { seen, target, clock, log, metrics, limits } = this.#options;
    const isPast = newest !== undefined && isOlder(version, newest);
    const nowMs = clock.monotonicMs();
    this.#sinceMs = isPast ? (this.#sinceMs ?? nowMs) : undefined;
    if (this.#sinceMs === undefined) return;
    if (nowMs - this.#sinceMs < (limits.pastMs ?? 0)) throw new WatchFailure("rewound", pastText);
    this.#sinceMs = undefined;
    seen.reset(target.resource.plural, version);
    log.warn({ what: target.what }, "the cluster went back to an older state, listing everything");
    metrics.watchRestarts.inc({ reason: "rewound" });
  }
}
