/** Where objects come from and where their status goes: files (`directory-objects.ts`) or a cluster (`cluster-objects.ts`). */

import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { ClusterTrust } from "../model/cluster-trust.ts";
import type { Source, StatusSink } from "../model/source.ts";
import type { Environment } from "../options/parsing.ts";
import type { ServeConfig } from "../options/serve.ts";

export interface ObjectSource {
  readonly source: Source;
  /** Where users look for the status of an object, beside the log; undefined where they look at the log. */
  readonly statusSink: StatusSink | undefined;
  /** The only namespace whose Groups may claim everything; undefined lets all of them. */
  readonly adminNamespace: string | undefined;
  /** As a person would name it. */
  readonly place: string;
  /** What a cluster vouches for; undefined where the objects are from files. */
  readonly trust: ClusterTrust | undefined;
  /** The command that adds the first objects, from the package's own directory. */
  readonly firstCommand: string;
  /** What a person should know of the way to the objects: a line each. */
  attention(): readonly string[];
  /** Sets what is only known when it is asked for. */
  measure(): void;
  /** Ends what is behind the source and the sink; after both. */
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
