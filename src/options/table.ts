/** The tables of options. Parsing, checks, `--help` and docs/reference/options.md all use them. */

import type { BlockList } from "node:net";
import type { Address } from "../lib/address.ts";
import { type LogLevel, logLevels } from "../lib/log.ts";
import type { Option } from "./parsing.ts";
import {
  directoryOption,
  each,
  fileOption,
  newDirectoryOption,
  one,
  readAddress,
  readBytes,
  readBytesOrNone,
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
    help: "after a restart, wait this long for the source or the store before serving the copy on disk",
    read: one(readDuration),
  } satisfies Option<number>,
  maxStalenessMs: {
    flag: "max-staleness",
    value: "DURATION",
    preset: "60s",
    help:
      "machines of a Profile with effect Install wait if the source was last heard longer ago, or not since the " +
      "start; give followers at least the value of their store; 0s: they never wait for the source",
    read: one(readLimit),
  } satisfies Option<number>,
  bootAddress: {
    flag: "boot-address",
    value: "HOST:PORT",
    preset: "[::]:8080",
    help: "listens for machines; open to everyone, and nothing on it changes state",
    read: one(readAddress),
  } satisfies Option<Address>,
  opsAddress: {
    flag: "ops-address",
    value: "HOST:PORT",
    preset: "127.0.0.1:8081",
    help: "listens for /livez /readyz /metrics /version, /preview and /history, see --ops-token-file",
    read: one(readAddress),
  } satisfies Option<Address>,
  opsTokenFile: fileOption(
    "ops-token-file",
    "/preview and /history need one of these tokens, a line each; default: none, and loopback alone shows them",
  ),
  advertiseAddress: {
    flag: "advertise-address",
    value: "HOST:PORT",
    help:
      "the address by which machines reach the boot service, as in {{davit.url}}; " +
      "default: the boot address, or the first global address where that is a wildcard",
    read: one(readAddress),
  } satisfies Option<Address>,
  clientLimitExempt: {
    flag: "client-limit-exempt",
    value: "CIDR",
    repeatable: true,
    help: "no limit by client for this network, such as a NAT's: it may have all connections and downloads",
    read: readNetworks,
  } satisfies Option<BlockList | undefined>,
  trustedProxies: {
    flag: "trusted-proxy",
    value: "CIDR",
    repeatable: true,
    help: "take the client for these limits from the X-Forwarded-For of proxies in this network; default: from none",
    read: readNetworks,
  } satisfies Option<BlockList | undefined>,
  assetsDir: directoryOption(
    "assets-dir",
    "kernels and initrds, served below /assets/; default: none, and /assets/ is 404",
  ),
  assetsCacheBytes: {
    flag: "assets-cache-bytes",
    value: "BYTES",
    preset: "268435456",
    help: "memory for assets that machines request repeatedly; 0: none",
    read: one(readBytesOrNone),
  } satisfies Option<number>,
  signingKey: fileOption(
    "signing-key",
    "OpenPGP private key, armored or binary, that signs rendered configs; default: none, and signatures are 404",
  ),
  signingPassphraseFile: fileOption(
    "signing-passphrase-file",
    "its passphrase, on the first line; or give the variable DAVIT_SIGNING_PASSPHRASE",
  ),
  grubSigningKey: fileOption(
    "grub-signing-key",
    "sign /grub by this key instead of --signing-key, and nothing else: for GRUB images that trust no other key",
  ),
  grubSigningPassphraseFile: fileOption(
    "grub-signing-passphrase-file",
    "its passphrase, on the first line; or give the variable DAVIT_GRUB_SIGNING_PASSPHRASE",
  ),
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
    help: "read them from a cluster; default: on in a pod without --manifests",
    read: one(readSwitch),
  } satisfies Option<boolean>,
  kubeconfig: {
    ...fileOption("kubeconfig", "how to reach the cluster; default: KUBECONFIG, the pod's account, ~/.kube/config"),
    needs: [cluster],
  },
  context: {
    flag: "context",
    value: "NAME",
    help: "context of the kubeconfig; default: its current one",
    read: one(readText),
    needs: [cluster],
  } satisfies Option<string>,
  namespaces: {
    flag: "namespace",
    value: "NAMESPACE",
    repeatable: true,
    help: "watch this namespace of the cluster; default: that of the pod or of the context",
    read: each(readNamespace),
    needs: [cluster],
    excludes: { name: "allNamespaces", excess: "Too many namespaces" },
  } satisfies Option<readonly string[]>,
  allNamespaces: {
    ...switchOption("all-namespaces", "watch every namespace of the cluster, which needs a ClusterRole"),
    needs: [cluster],
  },
  watchSilenceMs: {
    flag: "watch-silence",
    value: "DURATION",
    preset: "150s",
    help: "cut a watch of the cluster that is silent for so long, and list everything anew",
    read: one(readWait),
  } satisfies Option<number>,
  dataDir: {
    ...newDirectoryOption("data-dir", "write-ahead log and snapshots of the store; created with mode 0700"),
    preset: "./data",
  },
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
      "directory of these backups, on another disk than --data-dir; created with mode 0700",
    ),
    needs: [{ name: "backupEveryMs", lack: "No schedule", example: "24h" }],
  },
  backupKeep: {
    flag: "backup-keep",
    value: "COUNT",
    preset: "7",
    help: "how many of the newest ones to keep; davit removes nothing else from the directory",
    read: one(readCount),
  } satisfies Option<number>,
  adminNamespace: {
    flag: "admin-namespace",
    value: "NAMESPACE",
    help:
      "matchAll and priority of Groups count in this namespace only, and its Groups win ties with those of others; " +
      "default: they count in every namespace of --manifests",
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
    help: "a damaged data directory ends the start, or is moved aside: the store begins empty, and the source fills it",
    read: one(readChoice(["refuse", "move-aside"])),
  } satisfies Option<"refuse" | "move-aside">,
  storeAddress: {
    flag: "store-address",
    value: "HOST:PORT",
    preset: "127.0.0.1:2379",
    help: "listens for the key API; off loopback it needs TLS and authentication, or --store-insecure",
    read: one(readAddress),
  } satisfies Option<Address>,
  storeInsecure: switchOption(
    "store-insecure",
    "let --store-address be off loopback without TLS or authentication: anyone may read and write keys",
  ),
  ...certificatePair("TLS certificate of the store listener, PEM with its chain; followed"),
  storeClientCaFile: fileOption("store-client-ca-file", "clients of the store need a certificate by one of these, PEM"),
  storeTokenFile: fileOption(
    "store-token-file",
    "clients of the store need one of these tokens, a line each, as Bearer or as the password of Basic",
  ),
  storeOwnCertificate: {
    ...switchOption(
      "store-own-certificate",
      "TLS by a certificate that davit makes and renews; its authority is in DATA-DIR/certificate/ca.pem",
    ),
    excludes: { name: "storeCertFile", excess: "Two certificates of the store" },
  },
  storeCertificateNames: {
    flag: "store-certificate-name",
    value: "HOST",
    repeatable: true,
    help: "name or address in that certificate, beside localhost and the host of --store-advertise-url",
    read: each(readHost),
    needs: [ownCertificate],
  } satisfies Option<readonly string[]>,
  storeCaConfigMap: {
    flag: "store-ca-configmap",
    value: "NAME",
    help: "keep that authority's certificate in this ConfigMap of davit's own namespace, as ca.crt; it must exist",
    read: one(readObjectName),
    needs: [cluster, ownCertificate],
  } satisfies Option<string>,
  storeServiceAccounts: {
    flag: "store-allow-service-account",
    value: "NAMESPACE/NAME",
    repeatable: true,
    help: "clients of the store may send a token of this ServiceAccount of the cluster",
    read: each(readServiceAccount),
    needs: [cluster],
  } satisfies Option<readonly string[]>,
  storeReadingAccounts: {
    flag: "store-read-service-account",
    value: "NAMESPACE/NAME",
    repeatable: true,
    help: "the same for clients that follow and read, and may not write: followers",
    read: each(readServiceAccount),
    needs: [cluster],
  } satisfies Option<readonly string[]>,
  storeTokenAudience: {
    flag: "store-token-audience",
    value: "AUDIENCE",
    preset: "davit",
    help: "the audience that such tokens must have",
    read: one(readText),
  } satisfies Option<string>,
  allowedHosts: {
    flag: "allowed-host",
    value: "HOST",
    repeatable: true,
    help:
      "host name that clients of a store without credentials may use, beside IP addresses, localhost and " +
      "the host of --store-advertise-url",
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
    help: "limit of the names and values that clients write; beyond it the store takes only deletes",
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
  storeAdvertiseUrl: {
    flag: "store-advertise-url",
    value: "URL",
    help:
      "where clients of the store find it, as http://HOST:PORT; " +
      "default: the store address, or the first global address where that is a wildcard",
    read: one(readServerUrl),
  } satisfies Option<URL>,
  ...serviceOptions,
};

/** The options by which a client reaches the store of another davit. */
export const storeClientOptions = {
  storeTokenFile: fileOption("store-token-file", "token to send to the store; the first one of the file counts"),
  storeCaFile: fileOption("store-ca-file", "trust only these authorities for the store's certificate, PEM"),
  ...certificatePair("client certificate for the store, PEM"),
};
const { storeTokenFile, ...storeTls } = storeClientOptions;

/** The options of `davit boot`. */
export const bootOptions = {
  store: {
    flag: "store",
    value: "URL",
    required: "No store to follow: give --store URL",
    help: "the store to follow: http://HOST:PORT or https://HOST:PORT of davit serve",
    read: one(readServerUrl),
  } satisfies Option<URL>,
  storeTokenFile,
  dataDir: directoryOption(
    "data-dir",
    "data directory of a davit serve on this computer: send its local token to the store; only by the flag",
  ),
  ...storeTls,
  copyFile: {
    flag: "copy-file",
    value: "FILE",
    help: "keep the last copy here, mode 0600, to answer machines after a restart without the store",
    read: one(readText),
  } satisfies Option<string>,
  ...serviceOptions,
};

/** Makes the options of a certificate and its key. Each of the two needs the other. */
function certificatePair(help: string) {
  return {
    storeCertFile: { ...fileOption("store-cert-file", help), needs: [{ name: "storeKeyFile" }] },
    storeKeyFile: {
      ...fileOption("store-key-file", "private key of that certificate, PEM"),
      needs: [{ name: "storeCertFile" }],
    },
  };
}
