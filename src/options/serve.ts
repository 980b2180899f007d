/** Reads the options of `davit serve` and `davit boot`. It reports all problems together. */

import { relative } from "node:path";
import { authority, isLoopback } from "../lib/address.ts";
import { localTokenFile } from "../lib/token-file.ts";
import { type Environment, helpOf, readTable, type Values } from "./parsing.ts";
import { configWithout, type Paths, readOptions, ruleProblems } from "./rules.ts";
import { bootOptions, serveOptions, type serviceOptions, type storeClientOptions } from "./table.ts";

/** The options of the boot service, which `davit serve` and `davit boot` share. */
export type ServiceConfig = Values<typeof serviceOptions> & SigningPassphrase;

/** Passphrases from environment variables. They have no flags, because every user of the computer can see flags. */
interface SigningPassphrase {
  readonly signingPassphrase: string | undefined;
  readonly grubSigningPassphrase: string | undefined;
}

/** The options of `davit serve`, parsed. */
export type ServeConfig = Values<typeof serveOptions> &
  SigningPassphrase & {
    /** True if objects come from a cluster, false if they come from `manifests`. */
    readonly kubernetes: boolean;
  };

/** The options of `davit boot`, parsed. */
export type BootConfig = Values<typeof bootOptions> & SigningPassphrase;

/**
 * Reads the options of `davit serve`.
 * @throws {ConfigError} with every problem.
 */
export function readServeConfig(args: readonly string[], environment: Environment, paths: Paths): ServeConfig {
  const { values, problems, faulty } = readTable(serveOptions, args, environment);
  const isInPod = (environment.KUBERNETES_SERVICE_HOST ?? "") !== "";
  const hasManifests = values.manifests.length > 0;
  const kubernetes = values.kubernetes ?? (isInPod && !hasManifests);
  const config: ServeConfig = { ...values, kubernetes, ...signingPassphrase(environment) };
  const isMeant = hasManifests || kubernetes || faulty.has("manifests") || faulty.has("kubernetes");
  // If no source of objects is given, davit reports that, and not also the options that need a cluster.
  const ruled = { ...config, kubernetes: kubernetes || !hasManifests };
  problems.push(
    ...(isMeant ? [] : ["No source of objects: give --manifests DIR, or --kubernetes"]),
    ...ruleProblems(serveOptions, { values: ruled, faulty }, paths),
    ...signingProblems(config),
    ...storeDoorProblems(config),
    ...placeProblems(config),
  );
  return configWithout(problems, config);
}

/**
 * Reads the options of `davit boot`.
 * @throws {ConfigError} with every problem.
 */
export function readBootConfig(args: readonly string[], environment: Environment, paths: Paths): BootConfig {
  // `davit boot` reads only the flag `--data-dir`. The variable may be for a davit serve in the same container.
  const { values, problems } = readOptions(bootOptions, args, { ...environment, DAVIT_DATA_DIR: undefined }, paths);
  const config = { ...values, ...signingPassphrase(environment) };
  problems.push(...signingProblems(config), ...storeTlsProblems(values), ...storeTokenProblems(values, paths));
  return configWithout(problems, config);
}

/** Returns the help text of `davit serve`. */
export function serveHelp(): string {
  return helpOf(
    "serve --manifests DIR | --kubernetes",
    "Serves boot configs to machines from Profiles and Groups.",
    serveOptions,
  );
}

/** Returns the help text of `davit boot`. */
export function bootHelp(): string {
  return helpOf("boot --store URL", "Serves boot configs to machines from the store of another davit.", bootOptions);
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

/** @param name the prefix of the key's options. */
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

/** Refuses certificates for a store without TLS. */
export function storeTlsProblems({ store, storeCaFile, storeCertFile }: GivenStore): string[] {
  if (store?.protocol !== "http:" || (storeCaFile ?? storeCertFile) === undefined) return [];
  return [`No TLS with "${store.origin}": certificates need a URL that begins with https://`];
}

/** Refuses two tokens for a store, a missing local token, and a token that others on the network could read. */
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
  if (dataDir === undefined || !isDirectory(dataDir) || isFile(localTokenFile(dataDir))) return [];
  return [`No local token in "${dataDir}": start davit serve with it first, of this version or later`];
}

/** Refuses a backup directory inside the data directory: the backups would be lost together with the store. */
function placeProblems({ backupDir, dataDir }: ServeConfig): string[] {
  const isInside = backupDir !== undefined && !relative(dataDir, backupDir).startsWith("..");
  return isInside ? [`Bad place "${backupDir}" for --backup-dir: it is in --data-dir, and would be lost with it`] : [];
}

type GivenStore = Pick<Values<typeof storeClientOptions>, "storeTokenFile" | "storeCaFile" | "storeCertFile"> & {
  readonly store: URL | undefined;
  readonly dataDir: string | undefined;
};

/** Returns the file with the token for a store; undefined if no token is configured. */
export function shownTokenFile({
  storeTokenFile,
  dataDir,
}: Pick<GivenStore, "storeTokenFile" | "dataDir">): string | undefined {
  return storeTokenFile ?? (dataDir === undefined ? undefined : localTokenFile(dataDir));
}

function storeDoorProblems(config: ServeConfig): string[] {
  const { storeAddress, storeInsecure, storeClientCaFile } = config;
  const hasTls = storeHasTls(config);
  const problems: string[] = [];
  if (storeClientCaFile !== undefined && !hasTls) {
    problems.push("No TLS for --store-client-ca-file: give --store-cert-file and --store-key-file");
  }
  // A bad address is undefined here, and already reported.
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
