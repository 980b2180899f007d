/**
 * The port to a source of objects and to the place of their statuses. `open-objects.ts` implements it with files,
 * `cluster-objects.ts` with a cluster.
 */

import type { MachineMaker } from "../../controller/core/controller-ports.ts";
import type { LedgerMark } from "../../installs/ledger/mark-keeper.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import type { ClusterCallers } from "../../model/cluster-callers.ts";
import type { ClusterTrust } from "../../model/cluster-trust.ts";
import type { EventSink, Source, StatusSink } from "../../model/objects/source.ts";
import type { Environment } from "../../options/parsing.ts";
import type { ServeConfig } from "../../options/serve.ts";

export interface ObjectSource {
  readonly source: Source;
  /** Writes statuses to another place besides the log; undefined if only the log has them. */
  readonly statusSink: StatusSink | undefined;
  /** The only namespace whose Groups may use `matchAll` and a priority; undefined if all Groups may use them. */
  readonly adminNamespace: string | undefined;
  /** The source's name for people. */
  readonly place: string;
  /**
   * Gets the public keys that verify ServiceAccount tokens, and publishes the CA certificate that clients of the store
   * need. Undefined for objects from files.
   */
  readonly trust: ClusterTrust | undefined;
  /** Where a rollback of the ledger's store leaves a trace. Undefined for objects from files. */
  readonly ledgerMark: LedgerMark | undefined;
  /** Creates Machines of unknown machines. Undefined for objects from files: then they are only listed. */
  readonly machineMaker: MachineMaker | undefined;
  /** Asks the API server as the people who use the console. Undefined for objects from files. */
  readonly callers: ClusterCallers | undefined;
  /** Shows events of objects. Undefined for objects from files. */
  readonly eventSink: EventSink | undefined;
  /** A command that adds the first objects. Its paths are relative to the directory of davit's package. */
  readonly firstCommand: string;
  /** Problems of the connection to the source, one per line, for the operator. */
  attention(): readonly string[];
  /** Sets the metrics that are computed only for a scrape. */
  measure(): void;
  /** Stops what `source` and `statusSink` share, such as the API client. Call it after the source has stopped. */
  stop(): Promise<void>;
}

export interface ObjectSourceOptions {
  readonly config: ServeConfig;
  readonly environment: Environment;
  readonly log: Log;
  readonly clock: Clock;
  /** Returns a number from 0 to below 1, with a uniform distribution. */
  readonly random: () => number;
  readonly metrics: Metrics;
  readonly version: string;
  /** davit's host name: in a cluster the pod's name. */
  readonly instance: string;
}
