/**
 * Where objects come from and where their status goes: files (`directory-objects.ts`) or a cluster
 * (`cluster-objects.ts`).
 */

import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { ClusterTrust } from "../model/cluster-trust.ts";
import type { Source, StatusSink } from "../model/source.ts";
import type { Environment } from "../options/parsing.ts";
import type { ServeConfig } from "../options/serve.ts";

export interface ObjectSource {
  readonly source: Source;
  /** Where users find an object's status besides the log; undefined if only the log has it. */
  readonly statusSink: StatusSink | undefined;
  /** The only namespace whose Groups may claim everything; undefined allows all namespaces. */
  readonly adminNamespace: string | undefined;
  /** The source's name for people. */
  readonly place: string;
  /** The cluster's keys and authority; undefined for objects from files. */
  readonly trust: ClusterTrust | undefined;
  /** The command that adds the first objects, from the package's own directory. */
  readonly firstCommand: string;
  /** Problems on the way to the objects, for a person: a line each. */
  attention(): readonly string[];
  /** Sets the metrics that are computed when they are read. */
  measure(): void;
  /** Stops the client behind source and sink; call it after both have stopped. */
  stop(): Promise<void>;
}

export interface ObjectSourceOptions {
  readonly config: ServeConfig;
  readonly environment: Environment;
  readonly log: Log;
  readonly clock: Clock;
  /** From 0 to below 1, uniformly. */
  readonly random: () => number;
  readonly metrics: Metrics;
  readonly version: string;
  /** The name of the pod or of the machine. */
  readonly instance: string;
}
