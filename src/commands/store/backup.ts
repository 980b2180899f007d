import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { readCredentials } from "../../follow/credentials.ts";
import { FollowError, type FollowFailure } from "../../follow/follow-error.ts";
import { readStore } from "../../follow/store-request.ts";
import { ledgerRootPath } from "../../installs/ledger/ledger-documents.ts";
import { systemClock } from "../../lib/clock.ts";
import { diskFailure } from "../../lib/files/disk-sentence.ts";
import { diskFiles } from "../../lib/files/files.ts";
import { StartError } from "../../lib/start-error.ts";
import { backupPath } from "../../model/follow-line.ts";
import { type BesideTree, backupOf, saveBackup } from "../../store/backup/backup.ts";
import { readDirectory } from "../../store/inspect/inspect.ts";
import { lockDirectory } from "../../store/wal/lock.ts";
import { listSegments } from "../../store/wal/recover.ts";
import { workCommand } from "../core/command-line.ts";
import type { Host } from "../core/host.ts";
import { Progress, sizeText } from "../core/progress.ts";
import { type BackupConfig, backupHelp, readBackupConfig } from "./backup-options.ts";

// It is long because nothing is read while the disk that gets the backup is busy. Such a pause counts as silence, too.
const silenceMs = 60_000;

/** `davit backup`: copies a store into one file, from a running davit or from a data directory that no davit uses. */
export const backup = workCommand({
  name: "backup",
  help: backupHelp,
  readConfig: readBackupConfig,
  work: async (config, host) => {
    const progress = new Progress(host, systemClock, "backup is being written");
    try {
      await takeBackup(config, host, progress);
      return 0;
    } catch (error) {
      progress.endLine();
      throw error;
    }
  },
});

async function takeBackup(config: BackupConfig, host: Host, progress: Progress): Promise<void> {
  const { source, output: path, force: mayReplace } = config;
  const { head, sizeBytes } = await saveBackup({
    files: diskFiles,
    path,
    mayReplace,
    name: `the backup from "${source.kind === "store" ? source.url.origin : source.path}"`,
    pieces: source.kind === "store" ? fromStore(source.url, config, host) : fromDirectory(source.path),
    progress: (bytes) => progress.advance(bytes),
    random: randomBytes,
  }).catch((error: unknown) => {
    throw diskFailure("Writing", path, error);
  });
  const { clusterId: cluster, index } = head;
  const sentence = `Backup of index ${index} of cluster ${cluster} is in ${path}: ${sizeText(sizeBytes)}`;
  progress.done(sentence, { path, cluster, index, bytes: sizeBytes }, "backup written");
}

async function* fromStore(url: URL, config: BackupConfig, host: Host): AsyncIterable<Uint8Array> {
  const credentials = await readCredentials({
    tokenFile: config.tokenFile,
    caFile: config.storeCaFile,
    certFile: config.storeCertFile,
    keyFile: config.storeKeyFile,
  });
  try {
    const target = new URL(backupPath, url);
    yield* readStore({ target, credentials, clock: systemClock, silenceMs, signal: host.stop });
  } catch (error) {
    if (!(error instanceof FollowError)) throw error;
    const why = host.stop.aborted ? "it was stopped" : reasonOf(error);
    throw new StartError(`Fetching a backup from "${url.origin}": ${why}`, { cause: error });
  }
}

const reasons: Readonly<Record<Exclude<FollowFailure, "refused">, string>> = {
  unreachable: "it cannot be reached: start its davit, or correct --store",
  credentials: "the credentials cannot be read",
  silent: "it fell silent, and what came is not whole",
  ended: "the connection ended, and what came is not whole",
  protocol: "davit cannot read its answer",
};

/** Advice for the operator, by the status of the store's answer. */
const refusals: Readonly<Record<string, string>> = {
  "status 401": "the store asks for a token of its own: give --store-token-file, or on its own computer its --data-dir",
  "status 403": "the store is open to everyone, and so gives no backups: give it --store-token-file",
  "status 404": "nothing there gives backups; is it the store of a davit?",
  "status 503": "it gives as many backups as it can: try again later",
};

function reasonOf({ reason, detail }: FollowError): string {
  if (reason === "refused") return refusals[detail ?? ""] ?? `the store refuses: ${detail}`;
  return detail === undefined ? reasons[reason] : `${reasons[reason]} (${detail})`;
}

async function* fromDirectory(path: string): AsyncIterable<Uint8Array> {
  const lock = lockDirectory(path, { mends: false });
  try {
    const { machine, end } = await readDirectory(diskFiles, path);
    const origin = () => ({
      clusterId: end.head.clusterId.toString(16),
      raftIndex: end.lastSequence,
      raftTerm: end.term,
      atMs: systemClock.nowMs(),
    });
    yield* backupOf(machine.tree, origin, await ledgerBeside(path));
  } catch (error) {
    throw diskFailure("Reading", path, error);
  } finally {
    lock.release();
  }
}

/** The ledger of a data directory. One davit serves store and ledger, so the lock of the directory is enough. */
async function ledgerBeside(path: string): Promise<BesideTree | undefined> {
  const directory = join(path, "ledger");
  if ((await listSegments(diskFiles, directory)).length === 0) return undefined;
  const { machine } = await readDirectory(diskFiles, directory);
  return { tree: machine.tree, root: ledgerRootPath };
}
