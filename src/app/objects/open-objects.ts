/** Opens the source of objects that the options name: directories of files, or a cluster. */

import { openDirectories } from "./directory-objects.ts";
import type { ObjectSource, ObjectSourceOptions } from "./object-source.ts";

/** @throws {StartError} if the cluster cannot be reached. */
export async function openObjects(options: ObjectSourceOptions): Promise<ObjectSource> {
  if (!options.config.kubernetes) return openDirectories(options);
  // The client of the API server takes time and memory: davit loads it only for a cluster.
  const { openCluster } = await import("./cluster-objects.ts");
  return await openCluster(options);
}
