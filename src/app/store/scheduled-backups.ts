/** Takes backups of the store at intervals, if the options say so. */

import { randomBytes } from "node:crypto";
import { ledgerRootPath } from "../../installs/ledger/ledger-documents.ts";
import type { Clock } from "../../lib/clock.ts";
import { diskFiles } from "../../lib/files/files.ts";
import type { Log } from "../../lib/log.ts";
import type { ServeConfig } from "../../options/serve.ts";
import { BackupSchedule } from "../../store/backup/schedule.ts";
import type { Store } from "../../store/store.ts";

interface ScheduledBackupsOptions {
  readonly config: Pick<ServeConfig, "backupEveryMs" | "backupDir" | "limits">;
  readonly clock: Clock;
  readonly log: Log;
}

/** @returns the running schedule, which the caller stops; undefined without --backup-every. */
export function scheduleBackups(
  store: Store,
  ledger: Store,
  { config, clock, log }: ScheduledBackupsOptions,
): BackupSchedule | undefined {
  const { backupEveryMs: everyMs, backupDir: directory, limits } = config;
  if (everyMs === 0 || directory === undefined) return undefined;
  const where = { directory, everyMs, keep: limits.backupKeep, files: diskFiles };
  const backups = new BackupSchedule({
    ...where,
    store: {
      get identity() {
        return store.identity;
      },
      get bytes() {
        return store.bytes;
      },
      backup: () => store.backup(ledger.partAt(ledgerRootPath)),
      onLeadership: (listener) => store.onLeadership(listener),
    },
    clock,
    log: log.child({ part: "backup" }),
    random: randomBytes,
  });
  backups.start();
  return backups;
}
