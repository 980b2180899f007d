/** The ports to the machine that most parts of davit need. Each part picks those that it uses. */

import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

export interface Ports {
  readonly clock: Clock;
  readonly log: Log;
  /** From 0 to below 1, uniformly. */
  readonly random: () => number;
}
