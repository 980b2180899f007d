/**
 * Hands what machines ask at a follower to the store's writer, which shows it in the status of Machines. It is of no
 * use to a machine, so it comes last: one small request at a time, none while many machines wait for permits, and the
 * oldest sightings are dropped first. A writer of an earlier version takes none.
 */

import { LRUCache } from "lru-cache";
import type { Clock } from "../lib/clock.ts";
import { encodeSightings, type MachineSighting, maxSightings, sightingsPath, withScriptOf } from "../model/sighting.ts";
import type { Writers } from "./writers.ts";

export interface RemoteSightingsOptions {
  readonly writers: Pick<Writers, "askBy">;
  /** True while the writer has more important things to answer. */
  readonly isBusy: () => boolean;
  readonly clock: Clock;
}

/** A machine's newest sighting counts. */
const mostWaiting = 8_192;
const turnMs = 2_000;
/** After a failure: the writer is away, has no time, or is of an earlier version. */
const pauseMs = 60_000;

export class RemoteSightings {
  readonly #options: RemoteSightingsOptions;
  /** By the machine's identities. */
  readonly #waiting = new LRUCache<string, MachineSighting>({ max: mostWaiting });
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: RemoteSightingsOptions) {
    this.#options = options;
  }

  /** Records a request, and sends it later. */
  saw(sighting: MachineSighting): void {
    if (sighting.identities.length === 0) return;
    const key = keyOf(sighting);
    this.#waiting.set(key, withScriptOf(sighting, this.#waiting.peek(key)));
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Drops what waits. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, isBusy } = this.#options;
    const { signal } = this.#stopping;
    let waitMs = turnMs;
    for (;;) {
      await clock.sleep(waitMs, signal);
      if (signal.aborted) return;
      waitMs = turnMs;
      if (this.#waiting.size > 0 && !isBusy() && !(await this.#send())) waitMs = pauseMs;
    }
  }

  /** @returns false if no writer has taken them. */
  async #send(): Promise<boolean> {
    const { writers, clock } = this.#options;
    const batch = [...this.#waiting.rvalues()].filter((each) => each !== undefined).slice(0, maxSightings);
    const body = JSON.stringify(encodeSightings(batch, clock.nowMs()));
    const isTaken = (await writers.askBy(sightingsPath, () => body)) !== undefined;
    for (const sighting of isTaken ? batch : []) {
      const key = keyOf(sighting);
      // The machine may have asked again meanwhile.
      if (this.#waiting.peek(key) === sighting) this.#waiting.delete(key);
    }
    return isTaken;
  }
}

function keyOf({ identities }: MachineSighting): string {
  return identities.join(" ");
}
