/**
 * The newest version of each resource that davit has seen, and what davit believes of a list that is older. It outlives
 * the watch and the process: a davit that starts, or begins to lead, gets it from the store. So it notices a list that
 * shows the past (decision 0023).
 */

import type { Metrics } from "../../../lib/metrics/metrics.ts";
import type { Ports } from "../../../lib/ports.ts";
import type { SourceVersions } from "../../../model/objects/source.ts";
import { WatchFailure } from "./watch-failure.ts";
import type { WatchTarget } from "./watch-target.ts";

export class SeenVersions {
  #versions: SourceVersions;

  constructor(versions: SourceVersions = {}) {
    this.#versions = versions;
  }

  /** By resource, such as `groups`. A new object after each change. */
  get all(): SourceVersions {
    return this.#versions;
  }

  /** Undefined for a resource that davit has never seen. */
  of(resource: string): string | undefined {
    return this.#versions[resource];
  }

  /** Takes a version that the API server has shown, unless a later one is known. */
  note(resource: string, version: string): void {
    const known = this.of(resource);
    if (known === undefined || isOlder(known, version)) this.reset(resource, version);
  }

  /** Takes a version even if a later one is known: the API server went back to it for good. */
  reset(resource: string, version: string): void {
    this.#versions = { ...this.#versions, [resource]: version };
  }
}

export interface PastListsOptions extends Pick<Ports, "clock" | "log"> {
  readonly seen: SeenVersions;
  readonly target: WatchTarget;
  readonly metrics: Pick<Metrics, "watchRestarts">;
  readonly limits: {
    /** davit believes an older list once all lists were older for this long, in milliseconds. 0 by default. */
    readonly pastMs?: number;
  };
}

const pastText =
  "The API server shows an older state than before: a cache on the way shows the past, or its etcd was restored";

/**
 * Decides whether a watch believes a list that is older than what davit has seen. A cache on the way may show the past,
 * and then machines would get an older boot. But the API server may also have gone back for good, because its etcd was
 * restored. davit cannot distinguish the two at once, so the past must last for a while (decision 0023).
 */
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

/**
 * True when `version` is older than `than`. Versions are decimal revisions of etcd, which KEP-5504 guarantees from
 * Kubernetes 1.35 on. False for versions of any other form, because davit cannot compare them.
 */
export function isOlder(version: string, than: string): boolean {
  const areNumbers = /^\d+$/.test(version) && /^\d+$/.test(than);
  return areNumbers && BigInt(version) < BigInt(than);
}
