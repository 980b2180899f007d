/** Reads the options of `davit serve` and `davit boot`. It reports all problems together. */

import { relative } from "node:path";
import { localTokenFile } from "../lib/files/token-file.ts";
import { authority, isLoopback } from "../lib/text/address.ts";
import type { limitsOfBoot } from "./limits.ts";
import { type CommandHelp, type Environment, type Option, readTable, type Values } from "./parsing.ts";
import { configWithout, isGiven, type Paths, readOptions, ruleProblems } from "./rules.ts";
import { storeListenerOptions } from "./store.ts";
import { bootOptions, serveOptions, type serviceOptions, type storeClientOptions } from "./table.ts";

/** The options of the boot service, which `davit serve` and `davit boot` share. */
export type ServiceConfig = Values<typeof serviceOptions & { readonly limits: typeof limitsOfBoot }> &
  SigningPassphrase;

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
    ...bootTlsProblems(config),
    ...storeDoorProblems(config),
    ...memberProblems(config),
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
  problems.push(...signingProblems(config), ...bootTlsProblems(config), ...storesProblems(values, paths));
  return configWithout(problems, config);
}

export const serveHelp: CommandHelp = {
  usage: "serve --manifests DIR | --kubernetes",
  purpose: "Serves boot configs to machines from Profiles and Groups.",
  options: serveOptions,
};

export const bootHelp: CommandHelp = {
  usage: "boot --store URL",
  purpose: "Serves boot configs to machines from the store of another davit.",
  options: bootOptions,
};

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

/** The options of `davit serve` about a certificate of its own for machines. `davit boot` has none of them. */
interface OwnCertificateConfig {
  readonly bootTlsOwnCertificate?: boolean;
  readonly storeEtcdEndpoints?: readonly URL[] | undefined;
}

/** Refuses a listener for HTTPS without a certificate. */
function bootTlsProblems(config: ServiceConfig & OwnCertificateConfig): string[] {
  const { bootTlsAddress, bootTlsCertFile, bootTlsKeyFile, bootTlsOwnCertificate = false } = config;
  if (bootTlsAddress === undefined) return [];
  if (bootTlsOwnCertificate) {
    const isMember = config.storeEtcdEndpoints !== undefined;
    return isMember
      ? ["Members need certificates of the boot service by one authority: give --boot-tls-cert-file"]
      : [];
  }
  if ((bootTlsCertFile ?? bootTlsKeyFile) !== undefined) return [];
  const own = "bootTlsOwnCertificate" in config ? ", or --boot-tls-own-certificate" : "";
  return [`No certificate for --boot-tls-address: give --boot-tls-cert-file and --boot-tls-key-file${own}`];
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

/** Refuses what one of the members of a store cannot get. Each sentence appears once. */
function storesProblems(values: Values<typeof bootOptions>, paths: Paths): readonly string[] {
  // A bad URL is undefined here, and already reported.
  const stores: readonly (URL | undefined)[] = values.store ?? [undefined];
  const problems = stores.flatMap((store) => {
    const given = { ...values, store };
    return [...storeTlsProblems(given), ...storeTokenProblems(given, paths)];
  });
  if (values.dataDir !== undefined && stores.length > 1) {
    const cure = "with --data-dir give one URL in --store; else give --store-token-file";
    problems.push(`One local token for several stores: ${cure}`);
  }
  return [...new Set(problems)];
}

/** Refuses certificates for a store without TLS. */
export function storeTlsProblems({ store, storeCaFile, storeCertFile }: GivenStore): string[] {
  if (store?.protocol !== "http:" || (storeCaFile ?? storeCertFile) === undefined) return [];
  return [`No TLS with "${store.origin}": certificates need a URL that begins with https://`];
}

/** Refuses two tokens for a store, and one that others on the network could read. See `localTokenProblems`. */
export function storeTokenProblems(given: GivenStore, paths: Paths): string[] {
  const { store, storeTokenFile, dataDir } = given;
  if (storeTokenFile !== undefined && dataDir !== undefined) {
    return ["Two tokens for the store: give --store-token-file or --data-dir, not both"];
  }
  if (dataDir !== undefined) return localTokenProblems(dataDir, store, paths);
  if (storeTokenFile === undefined || store?.protocol !== "http:" || isOnLoopback(store)) return [];
  return [`No TLS with "${store.origin}": a token needs a URL that begins with https://, or a loopback address`];
}

/**
 * Refuses a missing local token, and a store that is not on loopback. Only a listener on loopback accepts the local
 * token (src/http/store/secrets-guard.ts), and no other server may get it.
 */
function localTokenProblems(dataDir: string, store: URL | undefined, { isFile, isDirectory }: Paths): string[] {
  if (store !== undefined && !isOnLoopback(store)) {
    const cure = "--data-dir needs a loopback address; else give --store-token-file";
    return [`Not on this computer: "${store.origin}": ${cure}`];
  }
  if (!isDirectory(dataDir) || isFile(localTokenFile(dataDir))) return [];
  return [`No local token in "${dataDir}": start davit serve with it first, of this version or later`];
}

function isOnLoopback({ hostname }: URL): boolean {
  return isLoopback(hostname.replace(/^\[|\]$/g, ""));
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
  if (storeAddress === "none") return [...problems, ...closedDoorProblems(config)];
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

/** Refuses options of a listener that davit does not open: whoever gives them expects clients. */
function closedDoorProblems(config: ServeConfig): string[] {
  const values: Readonly<Record<string, unknown>> = { ...config };
  const given = Object.entries<Option<unknown>>(storeListenerOptions).filter(
    ([name, { preset = "false" }]) => preset === "false" && isGiven(values[name]),
  );
  return given.map(([, { flag }]) => `No listener for --${flag}: --store-address is none; give HOST:PORT`);
}

/** Refuses a member that could not say where clients reach it: it joins the store before it listens. */
function memberProblems({ storeEtcdEndpoints, storeAddress, storeAdvertiseUrl }: ServeConfig): string[] {
  if (storeEtcdEndpoints !== undefined && storeAddress === "none") {
    return ["No listener for the followers of this member: with --store-etcd-endpoints give --store-address HOST:PORT"];
  }
  // A bad address is undefined here, and already reported.
  if (
    storeEtcdEndpoints === undefined ||
    storeAddress === "none" ||
    storeAddress?.port !== 0 ||
    storeAdvertiseUrl !== undefined
  )
    return [];
  const cure = "give --store-advertise-url, or a --store-address with a port";
  return [`No URL for the other members: the port of --store-address is chosen later; ${cure}`];
}

function storeHasTls({ storeCertFile, storeKeyFile, storeOwnCertificate }: ServeConfig): boolean {
  return (storeCertFile ?? storeKeyFile) !== undefined || storeOwnCertificate;
}

function storeAsksForCredentials(config: ServeConfig): boolean {
  const { storeTokenFile, storeClientCaFile, storeServiceAccounts, storeReadingAccounts } = config;
  if ((storeTokenFile ?? storeClientCaFile) !== undefined) return true;
  return storeServiceAccounts.length + storeReadingAccounts.length > 0;
}
