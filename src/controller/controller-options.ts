/** What the controller needs. */

import type { Store } from "../store/store.ts";
import type { ControllerPorts } from "./core/controller-ports.ts";
import type { Sightings } from "./machines/sightings.ts";
import type { LedgerFacts } from "./permits/grants.ts";
import type { ProfileWorld } from "./reconcile/resolve-profile.ts";
import type { TrialRunner } from "./trials/trial-thread.ts";

export interface ControllerOptions extends ControllerPorts {
  readonly store: Store;
  /** The controller's `stop` stops it, too. */
  readonly trials: TrialRunner;
  readonly checkTemplate: ProfileWorld["checkTemplate"];
  /** What statuses show of installs; undefined if there is no ledger. */
  readonly ledger?: LedgerFacts | undefined;
  /** The requests of machines; undefined if nothing records them. */
  readonly sightings?: Sightings | undefined;
  /** Called once: when the first full list since the start is in the store. */
  readonly onSynced: () => void;
  /** Called before each try to store the first complete list, and again after it is stored. */
  readonly onComplete?: () => void;
}
