/** Which watches are connected, as the metric tells it: by resource, and only when all of its watches are. */

import type { Metrics } from "../lib/metrics.ts";
import type { Resource } from "./resources.ts";

interface Count {
  total: number;
  connected: number;
}

/** One watch's part in it. */
export interface Tracked {
  connected(isConnected: boolean): void;
  /** The watch is no more. */
  end(): void;
}

export class WatchHealth {
  readonly #metrics: Pick<Metrics, "watchConnected">;
  readonly #counts = new Map<string, Count>();

  constructor(metrics: Pick<Metrics, "watchConnected">) {
    this.#metrics = metrics;
  }

  track({ plural }: Resource): Tracked {
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
    return { connected: (now) => change(now, 0), end: () => change(false, -1) };
  }
}
