/** Objects from files. Their status goes to the log, where the log of every source has it. */

import { DirectorySource } from "./directory/directory.ts";
import type { ObjectSource, ObjectSourceOptions } from "./object-source.ts";

export function openDirectories({ config, clock, log }: ObjectSourceOptions): ObjectSource {
  const { manifests, adminNamespace } = config;
  return {
    source: new DirectorySource({ directories: manifests, clock, log: log.child({ part: "directory" }) }),
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
