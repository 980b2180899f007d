/**
 * Takes what followers hand on of their machines, at a limited rate: davit has more important work, and drops the rest.
 */

import type { Clock } from "../../lib/clock.ts";
import { TokenBucket } from "../../lib/token-bucket.ts";
import type { MachineSighting } from "../../model/sighting.ts";
import type { Sightings } from "./sightings.ts";

const rate = { perSecond: 1_000, burst: 4_096 } as const;

export class SightingIntake {
  readonly #sightings: Pick<Sightings, "heard">;
  readonly #bucket: TokenBucket;

  constructor({ sightings, clock }: { readonly sightings: Pick<Sightings, "heard">; readonly clock: Clock }) {
    this.#sightings = sightings;
    this.#bucket = new TokenBucket({ clock, ...rate });
  }

  /** @returns how many were taken; the others are dropped. */
  take(sightings: readonly MachineSighting[]): number {
    const taken = sightings.filter(() => this.#bucket.tryTake());
    for (const sighting of taken) this.#sightings.heard(sighting);
    return taken.length;
  }
}
