/** The ports to the machine that most parts of davit need. Each part picks those that it uses. */

import { randomInt } from "node:crypto";
import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

export interface Ports {
  readonly clock: Clock;
  readonly log: Log;
  /** From 0 to below 1, uniformly. */
  readonly random: () => number;
}

/** Returns a random number from 0 to below 1, precise enough for the length of a wait. */
export function random(): number {
  return randomInt(2 ** 32) / 2 ** 32;
}
