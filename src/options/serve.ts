/**
 * The options of each command: parsing, `--help` and docs/operate/operations.md come from these tables. Every problem is found
 * before any is reported.
 */

import { relative } from "node:path";
import { authority, isLoopback } from "../lib/address.ts";
import { localTokenFile } from "../lib/token-file.ts";
import {
  ConfigError,
  type Environment,
  isMistyped,
  type Option,
  readTable,
  tableHelp,
  type Values,
} from "./parsing.ts";
import { bootOptions, serveOptions, type serviceOptions } from "./table.ts";

/** The options of the boot service, wherever it runs. */
export type ServiceConfig = Values<typeof serviceOptions> & SigningPassphrase;

/** Never by a flag: those can be seen by everybody on the machine. */
interface SigningPassphrase {
  readonly signingPassphrase: string | undefined;
  readonly grubSigningPassphrase: string | undefined;
}

/** The options of `davit serve`, parsed. */
export type ServeConfig = Values<typeof serveOptions> &
  SigningPassphrase & {
    readonly manifests: readonly string[];
    /** True reads objects from a cluster, false from `manifests`. */
    readonly kubernetes: boolean;
    /** None for that of the pod or of the context. */
    readonly namespaces: readonly string[];
    readonly storeCertificateNames: readonly string[];
    readonly allowedHosts: readonly string[];
    /** Who may show a token of the cluster: `NAMESPACE/NAME` each. */
    readonly storeServiceAccounts: readonly string[];
    /** The same, and they may only read. */
    readonly storeReadingAccounts: readonly string[];
  };

/** The options of `davit boot`, parsed. */
export type BootConfig = Values<typeof bootOptions> & SigningPassphrase & { readonly store: URL };

/** Looks at what is there, so that a wrong path is named with every other problem. */
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
  const { manifests = [], namespaces = [], storeCertificateNames = [], allowedHosts = [] } = values;
  const { storeServiceAccounts = [], storeReadingAccounts = [] } = values;
  const isInPod = (environment.KUBERNETES_SERVICE_HOST ?? "") !== "";
  const kubernetes = values.kubernetes ?? (isInPod && manifests.length === 0);
  const lists = {
    manifests,
    namespaces,
    storeCertificateNames,
    allowedHosts,
    storeServiceAccounts,
    storeReadingAccounts,
  };
  const config: ServeConfig = { ...values, ...lists, kubernetes, ...signingPassphrase(environment) };
  problems.push(
    ...(isMistyped("manifests", problems) || isMistyped("kubernetes", problems) ? [] : sourceProblems(config, paths)),
    ...assetsProblems(config, paths),
    ...signingProblems(config),
    ...fileProblems(serveOptions, config, paths),
    ...pairProblems(config),
    ...storeDoorProblems(config),
    ...scheduleProblems(config),
  );
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(config);
}

/**
 * Reads the options of `davit boot`.
 * @throws {ConfigError} with every problem.
 */
export function readBootConfig(args: readonly string[], environment: Environment, paths: Paths): BootConfig {
  // Of the variable a container's davit serve may be meant: only the flag names another one's directory.
  const { values, problems } = readTable(bootOptions, args, { ...environment, DAVIT_DATA_DIR: undefined });
  const { store } = values;
  const passphrase = signingPassphrase(environment);
  problems.push(
    ...assetsProblems(values, paths),
    ...signingProblems({ ...values, ...passphrase }),
    ...fileProblems(bootOptions, values, paths),
    ...pairProblems(values),
    ...storeTlsProblems(values),
    ...storeTokenProblems(values, paths),
  );
  if (store === undefined && !isStoreNamed(problems)) {
    problems.push("No store to follow: give --store URL");
  }
  if (problems.length > 0 || store === undefined) throw new ConfigError(problems);
  return Object.freeze({ ...values, ...passphrase, store });
}

/** The help text of `davit serve`. */
export function serveHelp(): string {
  return helpOf(
    "serve --manifests DIR | --kubernetes",
    "Serves boot configs to machines from Profiles and Groups.",
    serveOptions,
  );
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

/** True where a problem is about the store already. */
function isStoreNamed(problems: readonly string[]): boolean {
  return isMistyped("store", problems) || problems.some((problem) => / (--store|DAVIT_STORE):/.test(problem));
}

/** What only a cluster as the source gives a meaning. */
const clusterOptions = [
  "kubeconfig",
  "context",
  "namespaces",
  "allNamespaces",
  "storeCaConfigMap",
  "storeServiceAccounts",
  "storeReadingAccounts",
] as const;

function sourceProblems(config: ServeConfig, { isDirectory }: Paths): string[] {
  const { kubernetes, manifests } = config;
  if (kubernetes && manifests.length > 0) return ["Two sources of objects: give --manifests or --kubernetes, not both"];
  if (kubernetes) return clusterProblems(config);
  if (manifests.length === 0) return ["No source of objects: give --manifests DIR, or --kubernetes"];
  const problems = manifests
    .filter((path) => !isDirectory(path))
    .map((path) => `No directory "${path}": --manifests needs one that exists`);
  const given = clusterOptions.filter((name) => isGiven(config[name]));
  return [...problems, ...given.map((name) => `No cluster for --${serveOptions[name].flag}: give --kubernetes`)];
}

function isGiven(value: string | boolean | readonly string[] | undefined): boolean {
  return value !== undefined && value !== false && (typeof value !== "object" || value.length > 0);
}

function clusterProblems({ namespaces, allNamespaces }: ServeConfig): string[] {
  if (!allNamespaces || namespaces.length === 0) return [];
  return ["Too many namespaces: give --namespace or --all-namespaces, not both"];
}

function assetsProblems({ assetsDir }: Pick<ServiceConfig, "assetsDir">, { isDirectory }: Paths): string[] {
  if (assetsDir === undefined || isDirectory(assetsDir)) return [];
  return [`No directory "${assetsDir}": --assets-dir needs one that exists`];
}

function signingPassphrase(environment: Environment): SigningPassphrase {
  const { DAVIT_SIGNING_PASSPHRASE: given = "", DAVIT_GRUB_SIGNING_PASSPHRASE: ofGrub = "" } = environment;
  return { signingPassphrase: given || undefined, grubSigningPassphrase: ofGrub || undefined };
}

type SigningConfig = Pick<
  ServiceConfig,
  | "signingKey"
  | "signingPassphraseFile"
  | "signingPassphrase"
  | "grubSigningKey"
  | "grubSigningPassphraseFile"
  | "grubSigningPassphrase"
>;

function signingProblems(config: SigningConfig): string[] {
  const { signingKey, signingPassphraseFile, signingPassphrase } = config;
  const { grubSigningKey, grubSigningPassphraseFile, grubSigningPassphrase } = config;
  return [
    ...keyProblems("signing", signingKey, signingPassphraseFile, signingPassphrase),
    ...keyProblems("grub-signing", grubSigningKey, grubSigningPassphraseFile, grubSigningPassphrase),
  ];
}

/** @param name what the options of the key begin with. */
function keyProblems(
  name: string,
  key: string | undefined,
  passphraseFile: string | undefined,
  passphrase: string | undefined,
): string[] {
  const variable = `DAVIT_${name.toUpperCase().replace("-", "_")}_PASSPHRASE`;
  if (passphraseFile !== undefined && passphrase !== undefined) {
    return [`Two passphrases: give --${name}-passphrase-file or ${variable}, not both`];
  }
  if (key !== undefined || (passphraseFile ?? passphrase) === undefined) return [];
  return [`No key for the ${name.replace("grub-", "GRUB ")} passphrase: give --${name}-key`];
}

const fileNames = [
  "kubeconfig",
  "opsTokenFile",
  "signingKey",
  "signingPassphraseFile",
  "grubSigningKey",
  "grubSigningPassphraseFile",
  "storeTokenFile",
  "storeCaFile",
  "storeCertFile",
  "storeKeyFile",
  "storeClientCaFile",
] as const;
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

/** Two tokens for a store, one that is nowhere, or one that others on the network could read. */
export function storeTokenProblems(
  { store, storeTokenFile, dataDir }: GivenStore,
  { isFile, isDirectory }: Paths,
): string[] {
  if (storeTokenFile !== undefined && dataDir !== undefined) {
    return ["Two tokens for the store: give --store-token-file or --data-dir, not both"];
  }
  const isShown = (storeTokenFile ?? dataDir) !== undefined;
  if (isShown && store?.protocol === "http:" && !isLoopback(store.hostname.replace(/^\[|\]$/g, ""))) {
    return [`No TLS with "${store.origin}": a token needs a URL that begins with https://, or a loopback address`];
  }
  if (dataDir === undefined) return [];
  if (!isDirectory(dataDir)) return [`No directory "${dataDir}": --data-dir needs one that exists`];
  if (isFile(localTokenFile(dataDir))) return [];
  return [`No local token in "${dataDir}": start davit serve with it first, of this version or later`];
}

/** Half a schedule of backups, or one whose backups would be lost with the store. */
function scheduleProblems({ backupEveryMs, backupDir, dataDir }: ServeConfig): string[] {
  // What is refused is missing here.
  if (backupEveryMs === undefined || dataDir === undefined) return [];
  if (backupDir === undefined) {
    return backupEveryMs === 0 ? [] : ["No place for --backup-every: give --backup-dir DIR"];
  }
  if (backupEveryMs === 0) return ["No schedule for --backup-dir: give --backup-every DURATION, such as 24h"];
  const isInside = !relative(dataDir, backupDir).startsWith("..");
  return isInside ? [`Bad place "${backupDir}" for --backup-dir: it is in --data-dir, and would be lost with it`] : [];
}

type GivenStore = Pick<GivenFiles, "storeTokenFile"> & {
  readonly store: URL | undefined;
  readonly dataDir?: string | undefined;
};

/** The file whose token is shown to a store; undefined for none. */
export function shownTokenFile({ storeTokenFile, dataDir }: Omit<GivenStore, "store">): string | undefined {
  return storeTokenFile ?? (dataDir === undefined ? undefined : localTokenFile(dataDir));
}

function storeDoorProblems(config: ServeConfig): string[] {
  const { storeAddress, storeInsecure, storeClientCaFile } = config;
  const hasTls = storeHasTls(config);
  const problems = certificateProblems(config);
  if (storeClientCaFile !== undefined && !hasTls) {
    problems.push("No TLS for --store-client-ca-file: give --store-cert-file and --store-key-file");
  }
  // An address that is refused is missing here.
  if (storeAddress === undefined || isLoopback(storeAddress.host) || storeInsecure === true) return problems;
  const lacks = [
    ...(hasTls ? [] : ["TLS (--store-cert-file and --store-key-file, or --store-own-certificate)"]),
    ...(storeAsksForCredentials(config) ? [] : ["authentication (--store-token-file or --store-client-ca-file)"]),
  ];
  if (lacks.length === 0) return problems;
  const cure = `it needs ${lacks.join(" and ")}; else keep --store-address on loopback or say --store-insecure`;
  return [...problems, `Refusing to listen on "${authority(storeAddress)}": ${cure}`];
}

function storeHasTls({ storeCertFile, storeKeyFile, storeOwnCertificate }: ServeConfig): boolean {
  return (storeCertFile ?? storeKeyFile) !== undefined || storeOwnCertificate;
}

function storeAsksForCredentials(config: ServeConfig): boolean {
  const { storeTokenFile, storeClientCaFile, storeServiceAccounts, storeReadingAccounts } = config;
  if ((storeTokenFile ?? storeClientCaFile) !== undefined) return true;
  return storeServiceAccounts.length + storeReadingAccounts.length > 0;
}

/** Two certificates, or what goes with one of davit's own where there is none. */
function certificateProblems(config: ServeConfig): string[] {
  const { storeOwnCertificate, storeCertFile } = config;
  if (storeOwnCertificate) {
    return storeCertFile === undefined
      ? []
      : ["Two certificates of the store: give --store-own-certificate or --store-cert-file, not both"];
  }
  const given = (["storeCertificateNames", "storeCaConfigMap"] as const).filter((name) => isGiven(config[name]));
  return given.map((name) => `No own certificate for --${serveOptions[name].flag}: give --store-own-certificate`);
}
