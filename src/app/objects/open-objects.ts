/** Opens the source of objects that the options name: directories of files, or a cluster. */

import { DirectorySource } from "../../sources/directory/directory.ts";
import { signsOfLife } from "../core/signs-of-life.ts";
import type { ObjectSource, ObjectSourceOptions } from "./object-source.ts";

/** @throws {StartError} if the cluster cannot be reached. */
export async function openObjects(options: ObjectSourceOptions): Promise<ObjectSource> {
  if (!options.config.kubernetes) return openDirectories(options);
  // The client of the API server takes time and memory: davit loads it only for a cluster.
  const { openCluster } = await import("./cluster-objects.ts");
  return await openCluster(options);
}

/** Reads objects from files. Their status is only in the log: davit never writes the files. */
function openDirectories({ config, clock, log }: ObjectSourceOptions): ObjectSource {
  const { manifests, adminNamespace, installMaxSourceAgeMs, limits, storeEtcdEndpoints } = config;
  const { rescanMs } = signsOfLife(installMaxSourceAgeMs);
  return {
    source: new DirectorySource({
      directories: manifests,
      rescanMs,
      clock,
      log: log.child({ part: "directory" }),
      // A member of a shared store may answer machines before it reads its source. Any davit does so after the grace.
      idleMs: storeEtcdEndpoints === undefined ? limits.sourceGraceMs / 2 : 0,
    }),
    statusSink: undefined,
    trust: undefined,
    ledgerMark: undefined,
    machineMaker: undefined,
    callers: undefined,
    eventSink: undefined,
    adminNamespace,
    place: manifests.join(", "),
    firstCommand: `cp manifests/quickstart/*.yaml ${manifests[0] ?? "."}`,
    measure: () => undefined,
    attention: () => [],
    stop: async () => undefined,
  };
}
