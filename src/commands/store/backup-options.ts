/** The options of `davit backup` and `davit restore`. */

import { dirname } from "node:path";
import {
  type CommandHelp,
  ConfigError,
  type Environment,
  type Option,
  readTable,
  type Values,
} from "../../options/parsing.ts";
import {
  directoryOption,
  fileOption,
  newDirectoryOption,
  one,
  readServerUrl,
  readText,
  switchOption,
} from "../../options/readers.ts";
import { configWithout, type Paths, readOptions } from "../../options/rules.ts";
import { shownTokenFile, storeTlsProblems, storeTokenProblems } from "../../options/serve.ts";
import { storeClientOptions } from "../../options/table.ts";
import { placeOptions, withoutOtherPlace } from "./store-places.ts";

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

const restoreOptions = {
  input: { ...fileOption("input", "the backup"), required: "No backup: give --input FILE" },
  ...placeOptions,
  dataDir: newDirectoryOption("data-dir", "the new data directory: an empty one, or one that does not exist"),
  storeEtcdEndpoints: {
    ...placeOptions.storeEtcdEndpoints,
    help: "begin the store in this etcd v3, instead of a data directory; nothing may be below --store-etcd-prefix",
  },
};

type BackupValues = Values<typeof backupOptions>;

/** Where a backup is taken from. */
export type BackupSource =
  | { readonly kind: "store"; readonly url: URL }
  | { readonly kind: "directory"; readonly path: string };

/** The options of `davit backup`, parsed. */
export type BackupConfig = Omit<BackupValues, "store" | "dataDir"> & {
  readonly source: BackupSource;
  /** The file with the token for the store; undefined without a token. */
  readonly tokenFile: string | undefined;
};

/** The options of `davit restore`, parsed. */
export type RestoreConfig = Values<typeof restoreOptions>;

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
 * Reads the options of `davit restore`.
 * @throws {ConfigError} with every problem.
 */
export function readRestoreConfig(args: readonly string[], environment: Environment, paths: Paths): RestoreConfig {
  const { values, problems, faulty } = readOptions(restoreOptions, args, withoutOtherPlace(args, environment), paths);
  const { dataDir, storeEtcdEndpoints } = values;
  if (dataDir === undefined && storeEtcdEndpoints === undefined && !faulty.has("store-etcd-endpoints")) {
    problems.push("No place for the store: give --data-dir DIR, or --store-etcd-endpoints URL,URL");
  }
  if (dataDir !== undefined && storeEtcdEndpoints !== undefined) {
    problems.push("Two places for the store: give --data-dir or --store-etcd-endpoints, not both");
  }
  return configWithout(problems, values);
}

export const backupHelp: CommandHelp = {
  usage: "backup --store URL --output FILE",
  purpose: "Takes a backup of everything in a store.",
  options: backupOptions,
};

export const restoreHelp: CommandHelp = {
  usage: "restore --input FILE --data-dir DIR",
  purpose: "Begins a store with the keys of a backup. What machines boot is then read from the source again.",
  options: restoreOptions,
};

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
