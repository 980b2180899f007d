import { randomBytes } from "node:crypto";
import { systemClock } from "../lib/clock.ts";
import { diskFiles } from "../lib/files.ts";
import { davitRoot } from "../model/documents.ts";
import { type ReadBackup, readBackup } from "../store/backup/backup.ts";
import { refuseUnlessEmpty, restore as restoreBackup } from "../store/backup/restore.ts";
import { storePath } from "../store/core/node.ts";
import { lockDirectory } from "../store/wal/lock.ts";
import { type RestoreConfig, readRestoreConfig, restoreHelp } from "./backup-options.ts";
import { workCommand } from "./command-line.ts";
import { diskFailure } from "./failure.ts";
import type { Host } from "./host.ts";
import { Progress } from "./progress.ts";

/**
 * `davit restore`: makes a data directory from a backup, without davit's own documents. So davit answers machines only
 * from objects that the source has now (docs/internals/decisions/0005-what-a-restore-brings-back.md).
 */
export const restore = workCommand({
  name: "restore",
  summary: "make a data directory of a backup",
  help: restoreHelp,
  readConfig: readRestoreConfig,
  work: async (config, host) => {
    await bringBack(config, host);
    return 0;
  },
});

async function bringBack({ input, dataDir: directory }: RestoreConfig, host: Host): Promise<void> {
  await refuseUnlessEmpty(diskFiles, directory);
  const backup = await readWhole(input);
  const { clusterId: cluster, index } = await restoreBackup({
    backup,
    directory,
    without: storePath(davitRoot),
    files: diskFiles,
    lock: lockDirectory,
    random: randomBytes,
  });
  const sentence =
    `${directory} holds the keys of index ${backup.head.index}, as cluster ${cluster} at index ${index}. ` +
    "Profiles and Groups come from the source once davit serve runs on it.";
  new Progress(host, systemClock, "backup is being restored").done(
    sentence,
    { path: directory, cluster, index },
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
