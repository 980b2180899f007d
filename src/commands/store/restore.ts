import { randomBytes } from "node:crypto";
import { systemClock } from "../../lib/clock.ts";
import { diskFiles } from "../../lib/files/files.ts";
import { davitRoot } from "../../model/objects/documents.ts";
import { type ReadBackup, readBackup } from "../../store/backup/backup.ts";
import { restore as restoreBackup } from "../../store/backup/restore.ts";
import type { NewPlace } from "../../store/core/log-port.ts";
import { storePath } from "../../store/core/node.ts";
import { workCommand } from "../core/command-line.ts";
import { diskFailure } from "../core/failure.ts";
import type { Host } from "../core/host.ts";
import { Progress } from "../core/progress.ts";
import { type RestoreConfig, readRestoreConfig, restoreHelp } from "./backup-options.ts";
import { newDirectory, prefixName, withNewPrefix } from "./store-places.ts";

/**
 * `davit restore`: begins a store from a backup, without davit's own documents. So davit answers machines only from
 * objects that the source has now (docs/internals/decisions/0005-what-a-restore-brings-back.md).
 */
export const restore = workCommand({
  name: "restore",
  help: restoreHelp,
  readConfig: readRestoreConfig,
  work: async (config, host) => {
    await bringBack(config, host);
    return 0;
  },
});

async function bringBack(config: RestoreConfig, host: Host): Promise<void> {
  const { input, dataDir } = config;
  const doing = "Restoring to";
  if (config.storeEtcdEndpoints !== undefined) {
    const name = prefixName(config);
    return await withNewPrefix(config, doing, (place) => restoreTo(place, { input, name }, host));
  }
  // Without etcd, the options have a directory.
  const name = dataDir ?? "";
  await restoreTo(newDirectory(name, doing), { input, name }, host);
}

async function restoreTo(
  place: NewPlace,
  { input, name }: { readonly input: string; readonly name: string },
  host: Host,
): Promise<void> {
  await place.refuseUnlessEmpty();
  const backup = await readWhole(input);
  const { clusterId: cluster, index } = await restoreBackup({
    backup,
    place,
    without: storePath(davitRoot),
    random: randomBytes,
    nowMs: systemClock.nowMs(),
  });
  const sentence =
    `${name} has the keys of index ${backup.head.index}, as cluster ${cluster} at index ${index}. ` +
    "Profiles and Groups come from the source once davit serve runs on it.";
  new Progress(host, systemClock, "backup is being restored").done(
    sentence,
    { path: name, cluster, index },
    "backup restored",
  );
}

async function readWhole(path: string): Promise<ReadBackup> {
  try {
    return await readBackup(() => diskFiles.readPieces(path), `"${path}"`);
  } catch (error) {
    throw diskFailure("Reading", path, error);
  }
}
