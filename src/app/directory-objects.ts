/** Objects from files. Their status goes to the log, like every source's. */

import { DirectorySource } from "../directory/directory.ts";
import type { ObjectSource, ObjectSourceOptions } from "./object-source.ts";
import { signsOfLife } from "./signs-of-life.ts";

export function openDirectories({ config, clock, log }: ObjectSourceOptions): ObjectSource {
  const { manifests, adminNamespace, maxStalenessMs } = config;
  const { rescanMs } = signsOfLife(maxStalenessMs);
  return {
    source: new DirectorySource({ directories: manifests, rescanMs, clock, log: log.child({ part: "directory" }) }),
    statusSink: undefined,
    trust: undefined,
    adminNamespace,
    place: manifests.join(", "),
    firstCommand: `cp manifests/quickstart/*.yaml ${manifests[0] ?? "."}`,
    measure: () => undefined,
    attention: () => [],
    stop: async () => undefined,
  };
}
