/** The options of `davit backup` and `davit restore`, see `options/serve.ts`. */

import { dirname } from "node:path";
import {
  ConfigError,
  type Environment,
  type Option,
  one,
  readServerUrl,
  readSwitch,
  readTable,
  readText,
  type Values,
} from "../options/parsing.ts";
import {
  fileProblems,
  helpOf,
  type Paths,
  pairProblems,
  shownTokenFile,
  storeTlsProblems,
  storeTokenProblems,
} from "../options/serve.ts";
import { fileOption } from "../options/table.ts";

const backupOptions = {
  store: {
    flag: "store",
    value: "URL",
    help: "take the backup from a davit serve that runs: http://HOST:PORT or https://HOST:PORT of its store",
    read: one(readServerUrl),
  } satisfies Option<URL>,
  dataDir: {
    flag: "data-dir",
    value: "DIR",
    help: "take the backup from this data directory, whose davit does not run; with --store, send its local token",
    read: one(readText),
  } satisfies Option<string>,
  output: {
    flag: "output",
    value: "FILE",
    help: "where to put the backup, mode 0600: texts of Secrets are in it",
    read: one(readText),
  } satisfies Option<string>,
  force: {
    flag: "force",
    preset: "false",
    help: "replace the file if it exists, once the new backup is whole",
    read: one(readSwitch),
  } satisfies Option<boolean>,
  storeTokenFile: fileOption("store-token-file", "token to send to the store; the first one of the file counts"),
  storeCaFile: fileOption("store-ca-file", "trust only these authorities for the store's certificate, PEM"),
  storeCertFile: fileOption("store-cert-file", "client certificate for the store, PEM"),
  storeKeyFile: fileOption("store-key-file", "private key of that certificate, PEM"),
};

const restoreOptions = {
  input: { flag: "input", value: "FILE", help: "the backup", read: one(readText) } satisfies Option<string>,
  dataDir: {
    flag: "data-dir",
    value: "DIR",
    help: "the data directory to make of it: an empty one, or one that does not exist",
    read: one(readText),
  } satisfies Option<string>,
};

type BackupValues = Values<typeof backupOptions>;

/** Where a backup is taken from. */
export type BackupSource =
  | { readonly kind: "store"; readonly url: URL }
  | { readonly kind: "directory"; readonly path: string };

/** The options of `davit backup`, parsed. */
export type BackupConfig = Omit<BackupValues, "store" | "dataDir" | "output"> & {
  readonly source: BackupSource;
  readonly output: string;
  /** Where the token for the store comes from. */
  readonly tokenFile: string | undefined;
};

/** The options of `davit restore`, parsed. */
export type RestoreConfig = { readonly [Name in keyof Values<typeof restoreOptions>]: string };

/**
 * Reads the options of `davit backup`.
 * @throws {ConfigError} with every problem.
 */
export function readBackupConfig(args: readonly string[], environment: Environment, paths: Paths): BackupConfig {
  const { values, problems } = readTable(backupOptions, args, withoutOtherSources(args, environment));
  const { store, dataDir, output, ...rest } = values;
  const source = sourceOf(values);
  if (source === undefined && problems.length === 0) {
    problems.push("No source of the backup: give --store URL or --data-dir DIR");
  }
  if (store !== undefined) problems.push(...storeTokenProblems(values, paths));
  else if (dataDir !== undefined && !paths.isDirectory(dataDir)) {
    problems.push(`No directory "${dataDir}": --data-dir needs one that exists`);
  }
  problems.push(...outputProblems(values, paths));
  problems.push(...fileProblems(backupOptions, values, paths), ...pairProblems(values), ...storeTlsProblems(values));
  if (problems.length > 0 || source === undefined || output === undefined) throw new ConfigError(problems);
  return Object.freeze({ ...rest, source, output, tokenFile: shownTokenFile(values) });
}

/**
 * Reads the options of `davit restore`.
 * @throws {ConfigError} with every problem.
 */
export function readRestoreConfig(args: readonly string[], environment: Environment, paths: Paths): RestoreConfig {
  const { values, problems } = readTable(restoreOptions, args, environment);
  const { input, dataDir } = values;
  if (input === undefined) problems.push("No backup: give --input FILE");
  else if (!paths.isFile(input)) problems.push(`No file "${input}": --input needs one that exists`);
  if (dataDir === undefined) problems.push("No data directory: give --data-dir DIR");
  if (problems.length > 0 || input === undefined || dataDir === undefined) throw new ConfigError(problems);
  return Object.freeze({ input, dataDir });
}

/** The help text of `davit backup`. */
export function backupHelp(): string {
  return helpOf("backup --store URL --output FILE", "Takes a backup of everything in a store.", backupOptions);
}

/** The help text of `davit restore`. */
export function restoreHelp(): string {
  const purpose = "Makes a data directory of a backup; what machines boot from comes from the source then.";
  return helpOf("restore --input FILE --data-dir DIR", purpose, restoreOptions);
}

/**
 * A source that a flag names overrides one that a variable names, such as that of a davit serve in the same container.
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
  if (output === undefined) return ["No place for the backup: give --output FILE"];
  if (isDirectory(output)) return [`"${output}" is a directory: --output needs the name of a file`];
  if (!isDirectory(dirname(output))) return [`No directory "${dirname(output)}": --output needs one that exists`];
  if (isFile(output) && !force) return [`File "${output}" exists: give another name, or --force to replace it`];
  return [];
}
