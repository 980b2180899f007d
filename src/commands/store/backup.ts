import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import { readCredentials } from "../../follow/credentials.ts";
import { FollowError, type FollowFailure } from "../../follow/follow-error.ts";
import { readStore } from "../../follow/store-request.ts";
import { ledgerRootPath } from "../../installs/ledger/ledger-documents.ts";
import { systemClock } from "../../lib/clock.ts";
import { diskFailure } from "../../lib/files/disk-sentence.ts";
import { diskFiles } from "../../lib/files/files.ts";
import { StartError } from "../../lib/start-error.ts";
import { backupPath } from "../../model/follow-line.ts";
import {
  type CommandHelp,
  ConfigError,
  type Environment,
  type Option,
  readTable,
  type Values,
} from "../../options/parsing.ts";
import { directoryOption, one, readServerUrl, readText, switchOption } from "../../options/readers.ts";
import { configWithout, type Paths, readOptions } from "../../options/rules.ts";
import { shownTokenFile, storeTlsProblems, storeTokenProblems } from "../../options/serve.ts";
import { storeClientOptions } from "../../options/table.ts";
import { type BesideTree, backupOf, saveBackup } from "../../store/backup/backup.ts";
import { readDirectory } from "../../store/inspect/inspect.ts";
import { lockDirectory } from "../../store/wal/lock.ts";
import { listSegments } from "../../store/wal/recover.ts";
import { workCommand } from "../core/command-line.ts";
import type { Host } from "../core/host.ts";
import { Progress, sizeText } from "../core/progress.ts";

// It is long because nothing is read while the disk that gets the backup is busy. Such a pause counts as silence, too.
const silenceMs = 60_000;

const backupOptions = {
  store: {
    flag: "store",
    value: "URL",
    help: "take the backup from a davit serve that runs: http://HOST:PORT or https://HOST:PORT of its store",
    read: one(readServerUrl),
  } satisfies Option<URL>,
  dataDir: directoryOption(
    "data-dir",
    "take the backup from this data directory, whose davit does not run; with --store, send its local token",
  ),
  output: {
    flag: "output",
    value: "FILE",
    required: "No place for the backup: give --output FILE",
    help: "where to put the backup, mode 0600: texts of Secrets are in it",
    read: one(readText),
  } satisfies Option<string>,
  force: switchOption("force", "replace the file if it exists, once the new backup is whole"),
  ...storeClientOptions,
};

type BackupValues = Values<typeof backupOptions>;

/** Where a backup is taken from. */
type BackupSource =
  | { readonly kind: "store"; readonly url: URL }
  | { readonly kind: "directory"; readonly path: string };

/** The options of `davit backup`, parsed. */
type BackupConfig = Omit<BackupValues, "store" | "dataDir"> & {
  readonly source: BackupSource;
  /** The file with the token for the store; undefined without a token. */
  readonly tokenFile: string | undefined;
};

export const backupHelp: CommandHelp = {
  usage: "backup --store URL --output FILE",
  purpose: "Takes a backup of everything in a store.",
  options: backupOptions,
};

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

/**
 * Reads the options of `davit backup`.
 * @throws {ConfigError} with every problem.
 */
export function readBackupConfig(args: readonly string[], environment: Environment, paths: Paths): BackupConfig {
  const variables = withoutOtherSources(args, environment);
  const { values, problems, faulty } = readOptions(backupOptions, args, variables, paths);
  const { store, dataDir, ...rest } = values;
  const source = sourceOf(values);
  if (source === undefined && !faulty.has("store") && !faulty.has("data-dir")) {
    problems.push("No source of the backup: give --store URL or --data-dir DIR");
  }
  if (store !== undefined) problems.push(...storeTokenProblems(values, paths));
  problems.push(...outputProblems(values, paths), ...storeTlsProblems(values));
  if (source === undefined) throw new ConfigError(problems);
  return configWithout(problems, { ...rest, source, tokenFile: shownTokenFile(values) });
}

/**
 * Removes the variable of one source if a flag names the other source. For example, a container of `davit serve` sets
 * `DAVIT_DATA_DIR`, and `--store` must still work there.
 */
function withoutOtherSources(args: readonly string[], environment: Environment): Environment {
  const flags = readTable({ store: backupOptions.store, dataDir: backupOptions.dataDir }, args, {}).values;
  if (flags.dataDir !== undefined) return { ...environment, DAVIT_STORE: undefined };
  return flags.store === undefined ? environment : { ...environment, DAVIT_DATA_DIR: undefined };
}

function sourceOf({ store, dataDir }: BackupValues): BackupSource | undefined {
  if (store !== undefined) return { kind: "store", url: store };
  return dataDir === undefined ? undefined : { kind: "directory", path: dataDir };
}

function outputProblems({ output, force }: BackupValues, { isFile, isDirectory }: Paths): readonly string[] {
  // A missing or bad --output is undefined here, and is already reported.
  if (output === undefined) return [];
  if (isDirectory(output)) return [`"${output}" is a directory: --output needs the name of a file`];
  if (!isDirectory(dirname(output))) return [`No directory "${dirname(output)}": --output needs one that exists`];
  if (isFile(output) && !force) return [`File "${output}" exists: give another name, or --force to replace it`];
  return [];
}
