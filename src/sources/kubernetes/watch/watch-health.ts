/**
 * Records which watches are connected. The metric shows a resource as connected only when all of its watches are. For
 * people, `troubles` lists why watches are not connected.
 */

import { earliest } from "../../../lib/clock.ts";
import type { Metrics } from "../../../lib/metrics/metrics.ts";
import type { Resource } from "../client/resources.ts";

interface Count {
  total: number;
  connected: number;
}

/** What `WatchHealth` asks of a watch. */
interface TrackedWatch {
  readonly isRefused: boolean;
  /** Monotonic: when the watch last heard the API server; before the first time, when the watch was made. */
  readonly heardAtMs: number;
  /** Monotonic: the time of the watch's last proof. Undefined before its first list. */
  readonly provenAtMs: number | undefined;
}

/** The functions by which a watch reports its state. */
interface Tracked {
  connected(isConnected: boolean): void;
  /** Records why the watch is not connected. */
  failed(text: string): void;
  /** The watch has ended for good. */
  end(): void;
}

export class WatchHealth {
  readonly #metrics: Pick<Metrics, "watchConnected">;
  readonly #counts = new Map<string, Count>();
  /** The problems of watches that are not connected. */
  readonly #troubles = new Map<Tracked, string>();
  /** Unconnected watches and the namespaces that they read. */
  readonly #unconnected = new Map<TrackedWatch, string | undefined>();

  constructor(metrics: Pick<Metrics, "watchConnected">) {
    this.#metrics = metrics;
  }

  /** What keeps watches from connecting, each text once, in order of appearance. */
  get troubles(): readonly string[] {
    return [...new Set(this.#troubles.values())];
  }

  /**
   * Monotonic: the earliest time up to which an unconnected watch is proven; before its first list, when it last heard
   * the API server. Undefined if every watch is connected. Watches of lost namespaces do not count, nor do watches of
   * resources that davit has no right to read.
   */
  unheardSinceMs(lost: ReadonlySet<string>): number | undefined {
    let sinceMs: number | undefined;
    for (const [{ isRefused, provenAtMs, heardAtMs }, namespace = ""] of this.#unconnected) {
      if (!isRefused && !lost.has(namespace)) sinceMs = earliest(provenAtMs ?? heardAtMs, sinceMs);
    }
    return sinceMs;
  }

  /** @param namespace the watch's namespace; undefined for all. */
  track({ plural }: Resource, watch: TrackedWatch, namespace: string | undefined): Tracked {
    const count = this.#counts.get(plural) ?? { total: 0, connected: 0 };
    this.#counts.set(plural, count);
    let isConnected = false;
    const change = (now: boolean, watches: number) => {
      count.connected += Number(now) - Number(isConnected);
      count.total += watches;
      isConnected = now;
      this.#metrics.watchConnected.set({ resource: plural }, Number(count.connected === count.total));
    };
    change(false, 1);
    this.#unconnected.set(watch, namespace);
    const tracked: Tracked = {
      connected: (now) => {
        if (now) this.#troubles.delete(tracked);
        if (now) this.#unconnected.delete(watch);
        else this.#unconnected.set(watch, namespace);
        change(now, 0);
      },
      failed: (text) => void this.#troubles.set(tracked, text),
      end: () => {
        this.#troubles.delete(tracked);
        this.#unconnected.delete(watch);
        change(false, -1);
      },
    };
    return tracked;
  }
}
