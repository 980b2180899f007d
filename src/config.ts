/**
 * The options of each command: from these tables come parsing, `--help` and docs/operations.md. Every problem is found
 * before any is told.
 */

import { type Address, authority, isLoopback } from "./address.ts";
import { type LogLevel, logLevels } from "./lib/log.ts";
import {
  ConfigError,
  type Environment,
  type Option,
  one,
  readAddress,
  readBytes,
  readChoice,
  readCount,
  readDuration,
  readNamespace,
  readServerUrl,
  readSwitch,
  readTable,
  readText,
  readWait,
  tableHelp,
  type Values,
} from "./options.ts";

/** The boot service's own options, with those of operations and of the log: every command that answers machines. */
const serviceOptions = {
  sourceGraceMs: {
    flag: "source-grace",
    value: "DURATION",
    preset: "10s",
    help: "after a restart, wait this long for the source or the store before serving the copy on disk",
    read: one(readDuration),
  } satisfies Option<number>,
  bootAddress: {
    flag: "boot-address",
    value: "HOST:PORT",
    preset: "[::]:8080",
    help: "where machines ask; open to everyone, and nothing on it changes state",
    read: one(readAddress),
  } satisfies Option<Address>,
  opsAddress: {
    flag: "ops-address",
    value: "HOST:PORT",
    preset: "127.0.0.1:8081",
    help: "/livez /readyz /metrics /version",
    read: one(readAddress),
  } satisfies Option<Address>,
  advertiseAddress: {
    flag: "advertise-address",
    value: "HOST:PORT",
    help:
      "what machines reach the boot service by, as in {{davit.url}}; " +
      "default: the boot address, or the first global address where that is a wildcard",
    read: one(readAddress),
  } satisfies Option<Address>,
  assetsDir: {
    flag: "assets-dir",
    value: "DIR",
    help: "kernels and initrds, served below /assets/; default: none, and /assets/ is 404",
    read: one(readText),
  } satisfies Option<string>,
  grubSeparator: {
    flag: "grub-separator",
    value: "auto|semicolon|comma",
    preset: "auto",
    help: "between host and port in GRUB locations",
    read: one(readChoice(["auto", "semicolon", "comma"])),
  } satisfies Option<"auto" | "semicolon" | "comma">,
  grubCommands: {
    flag: "grub-commands",
    value: "auto|efi|plain",
    preset: "auto",
    help: "linuxefi and initrdefi, or linux and initrd",
    read: one(readChoice(["auto", "efi", "plain"])),
  } satisfies Option<"auto" | "efi" | "plain">,
  logLevel: {
    flag: "log-level",
    value: logLevels.join("|"),
    preset: "info",
    help: "this level and everything above it is logged",
    read: one(readChoice(logLevels)),
  } satisfies Option<LogLevel>,
  logFormat: {
    flag: "log-format",
    value: "json|pretty",
    help: "default: pretty on a terminal, else json",
    read: one(readChoice(["json", "pretty"])),
  } satisfies Option<"json" | "pretty">,
};

const serveOptions = {
  manifests: {
    flag: "manifests",
    value: "DIR",
    repeatable: true,
    help: "read Profile, Group, ConfigMap and Secret YAML from this directory, and follow changes",
    read: (texts) => texts.filter((text) => text !== ""),
  } satisfies Option<readonly string[]>,
  dataDir: {
    flag: "data-dir",
    value: "DIR",
    preset: "./data",
    help: "write-ahead log and snapshots of the store; created with mode 0700",
    read: one(readText),
  } satisfies Option<string>,
  adminNamespace: {
    flag: "admin-namespace",
    value: "NAMESPACE",
    help:
      "matchAll and priority of Groups count in this namespace only, and Groups of several namespaces that tie are " +
      "answered 500; default: they count in every namespace of --manifests, and the first name wins",
    read: one(readNamespace),
  } satisfies Option<string>,
  tombstoneTtlMs: {
    flag: "tombstone-ttl",
    value: "DURATION",
    preset: "60s",
    help: "machines whose own Group was removed wait this long before a less specific one may take them",
    read: one(readWait),
  } satisfies Option<number>,
  onDamage: {
    flag: "on-damage",
    value: "refuse|move-aside",
    preset: "refuse",
    help: "a damaged data directory ends the start, or is kept beside and the store begins empty, from its source",
    read: one(readChoice(["refuse", "move-aside"])),
  } satisfies Option<"refuse" | "move-aside">,
  storeAddress: {
    flag: "store-address",
    value: "HOST:PORT",
    preset: "127.0.0.1:2379",
    help: "the key API; off loopback it needs TLS and authentication, or --store-insecure",
    read: one(readAddress),
  } satisfies Option<Address>,
  storeInsecure: {
    flag: "store-insecure",
    preset: "false",
    help: "let --store-address be off loopback without TLS or authentication: anyone may read and write keys",
    read: one(readSwitch),
  } satisfies Option<boolean>,
  storeCertFile: fileOption("store-cert-file", "TLS certificate of the store listener, PEM with its chain; followed"),
  storeKeyFile: fileOption("store-key-file", "private key of that certificate, PEM"),
  storeClientCaFile: fileOption("store-client-ca-file", "clients of the store need a certificate by one of these, PEM"),
  storeTokenFile: fileOption(
    "store-token-file",
    "clients of the store need one of these tokens, a line each, as Bearer or as the password of Basic",
  ),
  storeMaxValueBytes: {
    flag: "store-max-value-bytes",
    value: "BYTES",
    preset: "1048576",
    help: "longest value that a client may write",
    read: one(readBytes),
  } satisfies Option<number>,
  storeQuotaBytes: {
    flag: "store-quota-bytes",
    value: "BYTES",
    preset: "1073741824",
    help: "how much the names and values that clients write may take; beyond it only deletes are taken",
    read: one(readBytes),
  } satisfies Option<number>,
  storeMaxWatchers: {
    flag: "store-max-watchers",
    value: "COUNT",
    preset: "10000",
    help: "how many watches of keys may wait at a time",
    read: one(readCount),
  } satisfies Option<number>,
  storeAdvertiseUrl: {
    flag: "store-advertise-url",
    value: "URL",
    help:
      "what clients of the store are told to use, as http://HOST:PORT; " +
      "default: the store address, or the first global address where that is a wildcard",
    read: one(readServerUrl),
  } satisfies Option<URL>,
  ...serviceOptions,
};

const bootOptions = {
  store: {
    flag: "store",
    value: "URL",
    help: "the store to follow: http://HOST:PORT or https://HOST:PORT of davit serve",
    read: one(readServerUrl),
  } satisfies Option<URL>,
  storeTokenFile: fileOption("store-token-file", "token to show to the store; the first one of the file counts"),
  storeCaFile: fileOption("store-ca-file", "trust only these authorities for the store's certificate, PEM"),
  storeCertFile: fileOption("store-cert-file", "certificate to show to the store, PEM"),
  storeKeyFile: fileOption("store-key-file", "private key of that certificate, PEM"),
  copyFile: {
    flag: "copy-file",
    value: "FILE",
    help: "keep the last copy here, mode 0600, to answer machines after a restart without the store",
    read: one(readText),
  } satisfies Option<string>,
  ...serviceOptions,
};

/** A file that must exist. */
export function fileOption(flag: string, help: string) {
  return { flag, value: "FILE", help, read: one(readText) } satisfies Option<string>;
}

/** The options of the boot service, wherever it runs. */
export type ServiceConfig = Values<typeof serviceOptions>;

/** The options of `davit serve`, parsed. */
export type ServeConfig = Values<typeof serveOptions> & { readonly manifests: readonly string[] };

/** The options of `davit boot`, parsed. */
export type BootConfig = Values<typeof bootOptions> & { readonly store: URL };

/** Tells what is there, so that a wrong path is named with every other problem. */
export interface Paths {
  isDirectory(path: string): boolean;
  isFile(path: string): boolean;
}

/**
 * Reads the options of `davit serve`.
 * @throws {ConfigError} with every problem.
 */
export function readServeConfig(args: readonly string[], environment: Environment, paths: Paths): ServeConfig {
  const { values, problems } = readTable(serveOptions, args, environment);
  const config: ServeConfig = { ...values, manifests: values.manifests ?? [] };
  problems.push(
    ...manifestsProblems(config, paths),
    ...assetsProblems(config, paths),
    ...fileProblems(serveOptions, config, paths),
    ...pairProblems(config),
    ...storeDoorProblems(config),
  );
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(config);
}

/**
 * Reads the options of `davit boot`.
 * @throws {ConfigError} with every problem.
 */
export function readBootConfig(args: readonly string[], environment: Environment, paths: Paths): BootConfig {
  const { values, problems } = readTable(bootOptions, args, environment);
  const { store } = values;
  problems.push(
    ...assetsProblems(values, paths),
    ...fileProblems(bootOptions, values, paths),
    ...pairProblems(values),
    ...storeTlsProblems(values),
  );
  if (store === undefined && !problems.some((problem) => / (--store|DAVIT_STORE):/.test(problem))) {
    problems.push("No store to follow: give --store URL");
  }
  if (problems.length > 0 || store === undefined) throw new ConfigError(problems);
  return Object.freeze({ ...values, store });
}

/** The help text of `davit serve`. */
export function serveHelp(): string {
  return helpOf("serve --manifests DIR", "Serves boot configs to machines from Profiles and Groups.", serveOptions);
}

/** The help text of `davit boot`. */
export function bootHelp(): string {
  return helpOf("boot --store URL", "Serves boot configs to machines from the store of another davit.", bootOptions);
}

/** The help text of a command with its options. */
export function helpOf(usage: string, purpose: string, table: Parameters<typeof tableHelp>[0]): string {
  return [
    `Usage: davit ${usage} [options]`,
    "",
    purpose,
    "Every option can also be given as an environment variable: DAVIT_BOOT_ADDRESS for --boot-address; lists are",
    "separated by commas there. A flag wins.",
    "",
    ...tableHelp(table),
    "",
  ].join("\n");
}

function manifestsProblems({ manifests }: ServeConfig, { isDirectory }: Paths): string[] {
  if (manifests.length === 0) return ["No source of objects: give --manifests DIR"];
  return manifests
    .filter((path) => !isDirectory(path))
    .map((path) => `No directory "${path}": --manifests needs one that exists`);
}

function assetsProblems({ assetsDir }: Pick<ServiceConfig, "assetsDir">, { isDirectory }: Paths): string[] {
  if (assetsDir === undefined || isDirectory(assetsDir)) return [];
  return [`No directory "${assetsDir}": --assets-dir needs one that exists`];
}

const fileNames = ["storeTokenFile", "storeCaFile", "storeCertFile", "storeKeyFile", "storeClientCaFile"] as const;
type FileName = (typeof fileNames)[number];
type GivenFiles = Readonly<Partial<Record<FileName, string | undefined>>>;

/** Files that are named and do not exist. */
export function fileProblems(
  table: Readonly<Partial<Record<FileName, Option<string>>>>,
  config: GivenFiles,
  { isFile }: Paths,
): string[] {
  return fileNames.flatMap((name) => {
    const path = config[name];
    if (path === undefined || isFile(path)) return [];
    return [`No file "${path}": --${table[name]?.flag} needs one that exists`];
  });
}

/** A certificate without its key, or the other way round. */
export function pairProblems({ storeCertFile, storeKeyFile }: GivenFiles): string[] {
  if ((storeCertFile === undefined) === (storeKeyFile === undefined)) return [];
  const [given, absent] = storeKeyFile === undefined ? ["cert", "key"] : ["key", "cert"];
  return [`Missing --store-${absent}-file: --store-${given}-file is of no use without it`];
}

/** Certificates for a store without TLS. */
export function storeTlsProblems({
  store,
  storeCaFile,
  storeCertFile,
}: GivenFiles & { readonly store: URL | undefined }) {
  if (store?.protocol !== "http:" || (storeCaFile ?? storeCertFile) === undefined) return [];
  return [`No TLS with "${store.origin}": certificates need a URL that begins with https://`];
}

function storeDoorProblems(config: ServeConfig): string[] {
  const { storeAddress, storeInsecure, storeCertFile, storeKeyFile, storeClientCaFile, storeTokenFile } = config;
  const hasTls = (storeCertFile ?? storeKeyFile) !== undefined;
  const problems: string[] = [];
  if (storeClientCaFile !== undefined && !hasTls) {
    problems.push("No TLS for --store-client-ca-file: give --store-cert-file and --store-key-file");
  }
  // An address that is refused is missing here.
  if (storeAddress === undefined || isLoopback(storeAddress.host) || storeInsecure === true) return problems;
  const lacks = [
    ...(hasTls ? [] : ["TLS (--store-cert-file and --store-key-file)"]),
    ...((storeTokenFile ?? storeClientCaFile) === undefined
      ? ["authentication (--store-token-file or --store-client-ca-file)"]
      : []),
  ];
  if (lacks.length === 0) return problems;
  const cure = `it needs ${lacks.join(" and ")}; else keep --store-address on loopback or say --store-insecure`;
  return [...problems, `Refusing to listen on "${authority(storeAddress)}": ${cure}`];
}
