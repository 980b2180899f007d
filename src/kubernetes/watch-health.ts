/**
 * Which watches are connected, as the metric tells it: by resource, and only when all of its watches are. And what keeps
 * the others from it, as a person reads it.
 */

import type { Metrics } from "../lib/metrics.ts";
import type { Resource } from "./resources.ts";

interface Count {
  total: number;
  connected: number;
}

/** One watch's part in it. */
export interface Tracked {
  connected(isConnected: boolean): void;
  /** Why it is not connected. */
  failed(text: string): void;
  /** The watch is no more. */
  end(): void;
}

export class WatchHealth {
  readonly #metrics: Pick<Metrics, "watchConnected">;
  readonly #counts = new Map<string, Count>();
  /** Of watches that are not connected. */
  readonly #troubles = new Map<Tracked, string>();

  constructor(metrics: Pick<Metrics, "watchConnected">) {
    this.#metrics = metrics;
  }

  /** What keeps watches from being connected, each text once, in the order in which they came up. */
  get troubles(): readonly string[] {
    return [...new Set(this.#troubles.values())];
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
    const tracked: Tracked = {
      connected: (now) => {
        if (now) this.#troubles.delete(tracked);
        change(now, 0);
      },
      failed: (text) => void this.#troubles.set(tracked, text),
      end: () => {
        this.#troubles.delete(tracked);
        change(false, -1);
      },
    };
    return tracked;
  }
}
