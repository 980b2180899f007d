/** The controller's ports and settings. */

import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics/metrics.ts";
import type { EditAudit } from "../model/objects/audit.ts";
import type { AssetStates, MissingFiles } from "../model/objects/profile.ts";
import type { SecretTexts } from "../model/objects/secret-texts.ts";
import type { Source, StatusSink } from "../model/objects/source.ts";
import type { Store } from "../store/store.ts";
import type { EnrolmentOptions, MachineMaker } from "./machines/enrolment.ts";
import type { MachineBoardOptions } from "./machines/machine-board.ts";
import type { Sightings } from "./machines/sightings.ts";
import type { LedgerFacts } from "./permits/grants.ts";
import type { ProfileWorld } from "./reconcile/resolve-profile.ts";
import type { StatusBookOptions } from "./status/status-book.ts";
import type { StepMetricsOptions } from "./step.ts";
import type { TrialRunner } from "./trials/trial-thread.ts";

export interface ControllerOptions {
  readonly source: Source;
  readonly store: Store;
  readonly statusSink: StatusSink;
  /** The controller's `stop` stops it, too. */
  readonly trials: TrialRunner;
  readonly clock: Clock;
  readonly log: Log;
  /** Gets each change of what machines get; undefined without an audit log. */
  readonly audit?: EditAudit | undefined;
  readonly metrics: Pick<Metrics, "sourceProblems" | "withheldDeletions"> &
    MachineBoardOptions["metrics"] &
    EnrolmentOptions["metrics"] &
    StatusBookOptions["metrics"] &
    StepMetricsOptions["metrics"];
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly sha256: (text: string) => string;
  /** How texts of Secrets are stored. */
  readonly secretTexts: SecretTexts;
  readonly checkTemplate: ProfileWorld["checkTemplate"];
  /** Where machines reach davit. */
  readonly davitUrl?: string;
  /** How long a machine waits after its Group was removed: whole seconds, at least 1. */
  readonly tombstoneTtlSeconds: number;
  /** What statuses show of installs; undefined if there is no ledger. */
  readonly ledger?: LedgerFacts | undefined;
  /** How far the assets of Profiles are; undefined without an assets directory. */
  readonly assets?: AssetStates | undefined;
  /** The missing files that keep machines from an install. */
  readonly missing?: MissingFiles | undefined;
  /** The requests of machines; undefined if nothing records them. */
  readonly sightings?: Sightings | undefined;
  /** Undefined if the source has no place for Machines of unknown machines. */
  readonly machineMaker?: MachineMaker | undefined;
  /** The only namespace where matchAll, broad selectors and priority take effect; undefined if they do everywhere. */
  readonly adminNamespace?: string | undefined;
  /** Called once: when the first full list since the start is in the store. */
  readonly onSynced: () => void;
  /** Called before each try to store the first complete list, and again after it is stored. */
  readonly onComplete?: () => void;
}
