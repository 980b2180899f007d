/** The parts that all watches of the cluster source share, and the function that makes a watch. */

import type { Metrics } from "../../../lib/metrics/metrics.ts";
import type { Ports } from "../../../lib/ports.ts";
import { isOwnKind } from "../../../model/objects/source.ts";
import type { Admission } from "../../admission/admission.ts";
import type { ApiClient } from "../client/client.ts";
import { collectionPath, type Resource } from "../client/resources.ts";
import type { HeldChanges } from "./held-changes.ts";
import type { ReadObject } from "./mirror.ts";
import { ObjectWatch, type ObjectWatchListener, type WatchLimits } from "./object-watch.ts";
import type { SeenVersions } from "./seen-versions.ts";
import type { SharedConditions } from "./shared-conditions.ts";
import type { WatchHealth } from "./watch-health.ts";

export interface WatchContext extends Pick<Ports, "clock" | "log" | "random"> {
  readonly client: Pick<ApiClient, "json" | "watch">;
  readonly admission: Admission;
  readonly conditions: SharedConditions;
  readonly metrics: Pick<Metrics, "watchRestarts" | "relists">;
  readonly health: WatchHealth;
  readonly held: Pick<HeldChanges, "track" | "sinceMs">;
  readonly seen: SeenVersions;
  readonly limits: WatchLimits;
}

interface WatchWish<Value> {
  readonly resource: Resource;
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined;
  /** The name of a single object. */
  readonly name?: string;
  readonly metadataOnly?: boolean;
  readonly read: ReadObject<Value>;
  readonly listener: ObjectWatchListener;
}

/** A watch that `WatchHealth` and `HeldChanges` track until `stop`. */
export interface RunningWatch<Value> {
  readonly watch: ObjectWatch<Value>;
  readonly stop: () => Promise<void>;
}

/** Makes a watch, but does not start it. */
export function makeWatch<Value>(context: WatchContext, wish: WatchWish<Value>): RunningWatch<Value> {
  const { resource, namespace, name, metadataOnly, read, listener } = wish;
  const where = namespace === undefined ? "in all namespaces" : `in ${namespace}`;
  const watch = new ObjectWatch({
    ...context,
    target: {
      what: `${resource.plural} ${where}`,
      path: collectionPath(resource, namespace),
      resource,
      namespace,
      ...(name !== undefined && { name }),
      ...(metadataOnly !== undefined && { metadataOnly }),
    },
    read,
    listener: {
      ...listener,
      connected: (isConnected) => {
        tracked.connected(isConnected);
        listener.connected?.(isConnected);
      },
      failed: (failure, text) => {
        tracked.failed(text);
        // Before the first list of a watch of ConfigMaps or of a Secret, davit shows no content from this watch. So no
        // shown content can be outdated, and changes need not wait.
        if (isOwn || watch.isSynced) waiting.failed(failure.reason === "refused");
        listener.failed?.(failure, text);
      },
      opening: () => waiting.opening(),
      opened: () => waiting.opened(),
    },
  });
  const isOwn = isOwnKind(resource.kind);
  const tracked = context.health.track(resource, watch, namespace);
  const waiting = context.held.track({ namespace, what: isOwn ? "own" : "reference" });
  const stop = async () => {
    await watch.stop();
    waiting.end();
    tracked.end();
  };
  return { watch, stop };
}
