/** The tables of options. Parsing, checks, `--help` and docs/reference/options.md all use them. */

import type { BlockList } from "node:net";
import { type LogLevel, logLevels } from "../lib/log.ts";
import type { Address } from "../lib/text/address.ts";
import { assetOptions, fetchAssets, fetchAssetsFrom } from "./assets.ts";
import { bootListenerOptions, bootTlsOwnCertificate } from "./boot-listener.ts";
import { etcdOptions } from "./etcd.ts";
import { opsOptions } from "./ops.ts";
import type { Option } from "./parsing.ts";
import {
  certificatePair,
  directoryOption,
  each,
  fileOption,
  newDirectoryOption,
  one,
  readAddress,
  readBytes,
  readChoice,
  readCount,
  readDuration,
  readHost,
  readInterval,
  readLimit,
  readNamespace,
  readNetworks,
  readObjectName,
  readServerUrl,
  readServerUrls,
  readServiceAccount,
  readSwitch,
  readText,
  readWait,
  switchOption,
} from "./readers.ts";

/** The options that `davit serve` and `davit boot` share: of the boot service, the operations listener and the log. */
export const serviceOptions = {
  sourceGraceMs: {
    flag: "source-grace",
    value: "DURATION",
    preset: "10s",
    help: "how long a restarted davit waits for the source or the store; after that it serves the copy on disk",
    read: one(readDuration),
  } satisfies Option<number>,
  maxStalenessMs: {
    flag: "max-staleness",
    value: "DURATION",
    preset: "60s",
    help:
      "machines of a Profile with effect Install wait if davit last heard the source longer ago than this, or not " +
      "yet since its start; give a follower at least the value of its store; 0s: they never wait for the source",
    read: one(readLimit),
  } satisfies Option<number>,
  bootAddress: {
    flag: "boot-address",
    value: "HOST:PORT",
    preset: "[::]:8080",
    help:
      "address on which machines reach davit; it is open to everyone: a request can claim a permit and end an " +
      "install, and opens nothing",
    read: one(readAddress),
  } satisfies Option<Address>,
  ...opsOptions,
  ...bootListenerOptions,
  clientLimitExempt: {
    flag: "client-limit-exempt",
    value: "CIDR",
    repeatable: true,
    help: "network without limits by client, such as a NAT's: one address may use all connections and downloads",
    read: readNetworks,
  } satisfies Option<BlockList | undefined>,
  trustedProxies: {
    flag: "trusted-proxy",
    value: "CIDR",
    repeatable: true,
    help: "network of proxies; for limits by client, the address in their X-Forwarded-For is the client; default: none",
    read: readNetworks,
  } satisfies Option<BlockList | undefined>,
  ...assetOptions,
  signingKey: fileOption(
    "signing-key",
    "OpenPGP private key, armored or binary, that signs rendered configs; default: none, and signatures answer 404",
  ),
  signingPassphraseFile: fileOption(
    "signing-passphrase-file",
    "passphrase of --signing-key, on the first line; or set the variable DAVIT_SIGNING_PASSPHRASE",
  ),
  grubSigningKey: fileOption(
    "grub-signing-key",
    "private key that signs only /grub, instead of --signing-key: for GRUB images that trust only this key",
  ),
  grubSigningPassphraseFile: fileOption(
    "grub-signing-passphrase-file",
    "passphrase of --grub-signing-key, on the first line; or set the variable DAVIT_GRUB_SIGNING_PASSPHRASE",
  ),
  grubSeparator: {
    flag: "grub-separator",
    value: "auto|semicolon|comma",
    preset: "auto",
    help: "the sign before the host in GRUB locations, as in (http;HOST:PORT); auto: comma for GRUB, else semicolon",
    read: one(readChoice(["auto", "semicolon", "comma"])),
  } satisfies Option<"auto" | "semicolon" | "comma">,
  grubCommands: {
    flag: "grub-commands",
    value: "auto|efi|plain",
    preset: "auto",
    help: "efi: configs load by linuxefi and initrdefi; plain: by linux and initrd; auto: plain for arm64, else efi",
    read: one(readChoice(["auto", "efi", "plain"])),
  } satisfies Option<"auto" | "efi" | "plain">,
  secretsKeyFile: fileOption(
    "secrets-key-file",
    "keys, one per line: the first one encrypts the texts of Secrets that davit keeps, all decrypt; default: none",
  ),
  logLevel: {
    flag: "log-level",
    value: logLevels.join("|"),
    preset: "info",
    help: "log messages of this level and above",
    read: one(readChoice(logLevels)),
  } satisfies Option<LogLevel>,
  logFormat: {
    flag: "log-format",
    value: "json|pretty",
    help: "format of log lines; default: pretty on a terminal, else json",
    read: one(readChoice(["json", "pretty"])),
  } satisfies Option<"json" | "pretty">,
};

const cluster = { name: "kubernetes", lack: "No cluster" };
const ownCertificate = { name: "storeOwnCertificate", lack: "No own certificate" };

/** The options of `davit serve`. */
export const serveOptions = {
  manifests: {
    flag: "manifests",
    value: "DIR",
    repeatable: true,
    help: "read Profile, Group, ConfigMap and Secret YAML from this directory, and follow changes",
    read: each(readText),
    mustExist: { kind: "directory" },
    excludes: { name: "kubernetes", excess: "Two sources of objects" },
  } satisfies Option<readonly string[]>,
  kubernetes: {
    flag: "kubernetes",
    help: "read these objects from a cluster; default: on in a pod without --manifests",
    read: one(readSwitch),
  } satisfies Option<boolean>,
  kubeconfig: {
    ...fileOption(
      "kubeconfig",
      "how to reach the cluster; default: KUBECONFIG, then the pod's account, then ~/.kube/config",
    ),
    needs: [cluster],
  },
  context: {
    flag: "context",
    value: "NAME",
    help: "context of the kubeconfig; default: its current context",
    read: one(readText),
    needs: [cluster],
  } satisfies Option<string>,
  namespaces: {
    flag: "namespace",
    value: "NAMESPACE",
    repeatable: true,
    help: "watch this namespace of the cluster; default: the namespace of the pod or of the context",
    read: each(readNamespace),
    needs: [cluster],
    excludes: { name: "allNamespaces", excess: "Too many namespaces" },
  } satisfies Option<readonly string[]>,
  allNamespaces: {
    ...switchOption("all-namespaces", "watch every namespace of the cluster; davit needs a ClusterRole for this"),
    needs: [cluster],
  },
  watchSilenceMs: {
    flag: "watch-silence",
    value: "DURATION",
    preset: "150s",
    help: "after this time without a message on a watch of the cluster, end the watch and list its objects anew",
    read: one(readWait),
  } satisfies Option<number>,
  dataDir: {
    ...newDirectoryOption("data-dir", "write-ahead log and snapshots of the store; created with mode 0700"),
    preset: "./data",
  },
  auditLog: {
    flag: "audit-log",
    value: "FILE|-",
    help:
      "write a line of JSON for each change of what machines get, each permit and each action of an operator: to " +
      "this file, which davit renames at 16 MiB, or - for standard output; default: none",
    read: one(readText),
  } satisfies Option<string>,
  backupEveryMs: {
    flag: "backup-every",
    value: "DURATION",
    preset: "0s",
    help: "how often to take a backup of the store into --backup-dir; 0s: never",
    read: one(readInterval),
    needs: [{ name: "backupDir", lack: "No place" }],
  } satisfies Option<number>,
  backupDir: {
    ...newDirectoryOption(
      "backup-dir",
      "directory of these backups: choose another disk than that of --data-dir; created with mode 0700",
    ),
    needs: [{ name: "backupEveryMs", lack: "No schedule", example: "24h" }],
  },
  backupKeep: {
    flag: "backup-keep",
    value: "COUNT",
    preset: "7",
    help: "how many backups to keep; davit removes older ones and unfinished ones of the same store, and no other file",
    read: one(readCount),
  } satisfies Option<number>,
  adminNamespace: {
    flag: "admin-namespace",
    value: "NAMESPACE",
    help:
      "the only namespace whose Groups may use matchAll and priority, and win ties with Groups of other namespaces; " +
      "default: davit's own if it watches several namespaces of a cluster, else every namespace may use them",
    read: one(readNamespace),
  } satisfies Option<string>,
  tombstoneTtlMs: {
    flag: "tombstone-ttl",
    value: "DURATION",
    preset: "60s",
    help: "after a Group is removed, its machines wait at least this long before a less specific Group may take them",
    read: one(readWait),
  } satisfies Option<number>,
  onDamage: {
    flag: "on-damage",
    value: "refuse|move-aside",
    preset: "refuse",
    help: "with a damaged data directory: refuse to start, or move it aside and fill an empty store from the source",
    read: one(readChoice(["refuse", "move-aside"])),
  } satisfies Option<"refuse" | "move-aside">,
  storeAddress: {
    flag: "store-address",
    value: "HOST:PORT",
    preset: "127.0.0.1:2379",
    help: "address of the key API; an address other than loopback needs TLS and authentication, or --store-insecure",
    read: one(readAddress),
  } satisfies Option<Address>,
  storeInsecure: switchOption(
    "store-insecure",
    "allow a --store-address other than loopback without TLS or authentication: anyone may read and write keys",
  ),
  ...certificatePair("TLS certificate of the store listener with its chain, PEM; davit follows changes of the file"),
  storeClientCaFile: fileOption(
    "store-client-ca-file",
    "authorities, PEM; clients of the store need a certificate of one of them",
  ),
  storeTokenFile: fileOption(
    "store-token-file",
    "tokens, one per line; clients of the store need one of them, as Bearer or as the password of Basic",
  ),
  storeOwnCertificate: {
    ...switchOption(
      "store-own-certificate",
      "TLS with a certificate that davit makes and renews; clients trust the authority in DATA-DIR/certificate/ca.pem" +
        "; not with --store-etcd-endpoints",
    ),
    excludes: { name: "storeCertFile", excess: "Two certificates of the store" },
  },
  bootTlsOwnCertificate,
  storeCertificateNames: {
    flag: "store-certificate-name",
    value: "HOST",
    repeatable: true,
    help: "name or address in davit's own certificate, besides localhost and the host of --store-advertise-url",
    read: each(readHost),
    needs: [ownCertificate],
  } satisfies Option<readonly string[]>,
  storeCaConfigMap: {
    flag: "store-ca-configmap",
    value: "NAME",
    help: "existing ConfigMap in davit's own namespace; davit writes the authority of its certificate there, as ca.crt",
    read: one(readObjectName),
    needs: [cluster, ownCertificate],
  } satisfies Option<string>,
  ledgerMarkConfigMap: {
    flag: "ledger-mark-configmap",
    value: "NAME",
    preset: "davit-ledger",
    help:
      "ConfigMap in davit's own namespace that marks how far its ledger is; members of one store need the same one, " +
      "and davits with different stores need different ones",
    read: one(readObjectName),
  } satisfies Option<string>,
  storeServiceAccounts: {
    flag: "store-allow-service-account",
    value: "NAMESPACE/NAME",
    repeatable: true,
    help: "clients of the store may read and write with a token of this ServiceAccount of the cluster",
    read: each(readServiceAccount),
    needs: [cluster],
  } satisfies Option<readonly string[]>,
  storeReadingAccounts: {
    flag: "store-read-service-account",
    value: "NAMESPACE/NAME",
    repeatable: true,
    help: "clients of the store, such as followers, may read but not write with a token of this ServiceAccount",
    read: each(readServiceAccount),
    needs: [cluster],
  } satisfies Option<readonly string[]>,
  storeTokenAudience: {
    flag: "store-token-audience",
    value: "AUDIENCE",
    preset: "davit",
    help: "the audience that tokens of ServiceAccounts must have",
    read: one(readText),
  } satisfies Option<string>,
  allowedHosts: {
    flag: "allowed-host",
    value: "HOST",
    repeatable: true,
    help:
      "host name by which clients may reach a store without credentials; IP addresses, localhost and the host of " +
      "--store-advertise-url are always allowed",
    read: each(readHost),
  } satisfies Option<readonly string[]>,
  storeMaxValueBytes: {
    flag: "store-max-value-bytes",
    value: "BYTES",
    preset: "1048576",
    help: "longest value that a client may write",
    read: one(readBytes),
  } satisfies Option<number>,
  // The values in the store are outside Node's heap, so the limit of that heap does not limit them.
  storeQuotaBytes: {
    flag: "store-quota-bytes",
    value: "BYTES",
    preset: "1073741824",
    help: "limit of the names and values that clients write; at the limit the store refuses writes that enlarge it",
    read: one(readBytes),
  } satisfies Option<number>,
  // Each watch needs about 10 KiB, most of it for the connection.
  storeMaxWatchers: {
    flag: "store-max-watchers",
    value: "COUNT",
    preset: "10000",
    help: "how many watches of keys may wait at a time",
    read: one(readCount),
  } satisfies Option<number>,
  ...etcdOptions,
  fetchAssetsFrom,
  storeAdvertiseUrl: {
    flag: "store-advertise-url",
    value: "URL",
    help:
      "the URL at which clients reach the store, as http://HOST:PORT; default: the store address; if that is a " +
      "wildcard, the first global address",
    read: one(readServerUrl),
  } satisfies Option<URL>,
  ...serviceOptions,
};

/** The options by which a client reaches the store of another davit. */
export const storeClientOptions = {
  storeTokenFile: fileOption("store-token-file", "token to send to the store: the first one in the file"),
  storeCaFile: fileOption("store-ca-file", "trust only these authorities for the store's certificate, PEM"),
  ...certificatePair("client certificate for the store, PEM"),
};
const { storeTokenFile, ...storeTls } = storeClientOptions;

/** The options of `davit boot`. */
export const bootOptions = {
  store: {
    flag: "store",
    value: "URL,URL",
    required: "No store to follow: give --store URL",
    help: "the store to follow: http://HOST:PORT or https://HOST:PORT of davit serve; several for members of one store",
    read: one(readServerUrls),
  } satisfies Option<readonly URL[]>,
  storeTokenFile,
  dataDir: directoryOption(
    "data-dir",
    "data directory of the davit serve at --store, on this computer: its local token goes there; no variable sets this",
  ),
  ...storeTls,
  copyFile: {
    flag: "copy-file",
    value: "FILE",
    help: "file of the last copy, mode 0600; after a restart it answers machines while the store is away",
    read: one(readText),
  } satisfies Option<string>,
  fetchAssets,
  ...serviceOptions,
};
