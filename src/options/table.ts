/** The tables of options. Parsing, checks, `--help` and docs/reference/options.md all use them. */

import type { BlockList } from "node:net";
import { type LogLevel, logLevels } from "../lib/log.ts";
import type { Address } from "../lib/text/address.ts";
import { assetOptions, fetchAssets, fetchAssetsFrom } from "./assets.ts";
import { bootListenerOptions, bootTlsOwnCertificate } from "./boot-listener.ts";
import { dhcpOptions } from "./dhcp.ts";
import { etcdOptions } from "./etcd.ts";
import { limitsOfBoot, limitsOfServe } from "./limits.ts";
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
  readChoice,
  readLimit,
  readNamespace,
  readNetworks,
  readServerUrls,
  readSwitch,
  readText,
  readWait,
  switchOption,
  under,
} from "./readers.ts";
import { storeListenerOptions, storeOptions } from "./store.ts";

const cluster = { name: "kubernetes", lack: "No cluster" };
const { assetsDir, ...otherAssetOptions } = assetOptions;
const { advertiseAddress, ...otherBootOptions } = bootListenerOptions;

/** The headings, in the order of `davit serve --help`. */
const firstHeading = "What a host needs first";
const sourceHeading = "Where objects come from";
const bootHeading = "How machines boot";
const assetsHeading = "Assets";
const opsHeading = "Operations and log";
const storeHeading = "The store";
const limitsHeading = "Limits";

/** The options that `davit serve` and `davit boot` share: of the boot service, the operations listener and the log. */
export const serviceOptions = {
  ...under(firstHeading, {
    bootAddress: {
      flag: "boot-address",
      value: "HOST:PORT",
      preset: "[::]:8080",
      help:
        "address on which machines reach davit; it is open to everyone: a request can claim a permit and end an " +
        "install, and opens nothing",
      read: one(readAddress),
    } satisfies Option<Address>,
    advertiseAddress,
    assetsDir,
  }),
  ...under(sourceHeading, {
    installMaxSourceAgeMs: {
      flag: "install-max-source-age",
      value: "DURATION",
      preset: "60s",
      help:
        "machines of a Profile with effect Install wait if davit last heard the source longer ago than this, or not " +
        "yet since its start; give a follower at least the value of its store; 0s: they never wait for the source",
      read: one(readLimit),
    } satisfies Option<number>,
  }),
  ...under(bootHeading, {
    ...otherBootOptions,
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
      help:
        "network of proxies; for limits by client, the address in their X-Forwarded-For is the client; " +
        "default: none",
      read: readNetworks,
    } satisfies Option<BlockList | undefined>,
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
  }),
  ...under(assetsHeading, otherAssetOptions),
  ...under("Signatures and encryption", {
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
    secretsKeyFile: fileOption(
      "secrets-key-file",
      "keys, one per line: the first one encrypts the texts of Secrets that davit keeps, all decrypt; default: none",
    ),
  }),
  ...under(opsHeading, {
    ...opsOptions,
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
  }),
};

/** The options of `davit serve`. */
export const serveOptions = {
  ...under(firstHeading, {
    manifests: {
      flag: "manifests",
      value: "DIR",
      repeatable: true,
      help: "read Profile, Group, ConfigMap and Secret YAML from this directory, and follow changes",
      read: each(readText),
      mustExist: { kind: "directory" },
      excludes: { name: "kubernetes", excess: "Two sources of objects" },
    } satisfies Option<readonly string[]>,
    dataDir: {
      ...newDirectoryOption("data-dir", "write-ahead log and snapshots of the store; created with mode 0700"),
      preset: "./data",
    },
  }),
  ...under(sourceHeading, {
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
    adminNamespace: {
      flag: "admin-namespace",
      value: "NAMESPACE",
      help:
        "the only namespace whose Groups may use matchAll and priority, and win ties with Groups of " +
        "other namespaces; default: davit's own if it watches several namespaces of a cluster, else every " +
        "namespace may use them",
      read: one(readNamespace),
    } satisfies Option<string>,
    tombstoneTtlMs: {
      flag: "tombstone-ttl",
      value: "DURATION",
      preset: "60s",
      help: "after a Group is removed, its machines wait at least this long before a less specific Group may take them",
      read: one(readWait),
    } satisfies Option<number>,
  }),
  ...under("DHCP and TFTP", dhcpOptions),
  ...serviceOptions,
  ...under(bootHeading, { bootTlsOwnCertificate }),
  ...under(assetsHeading, { fetchAssetsFrom }),
  ...under(opsHeading, {
    auditLog: {
      flag: "audit-log",
      value: "FILE|-",
      help:
        "write a line of JSON for each change of what machines get, each permit and each action of an operator: to " +
        "this file, which davit renames at 16 MiB, or - for standard output; default: none",
      read: one(readText),
    } satisfies Option<string>,
  }),
  ...under(storeHeading, storeOptions),
  ...under("Clients of the store", storeListenerOptions),
  ...under("The store in etcd", etcdOptions),
  ...under(limitsHeading, { limits: limitsOfServe }),
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
  ...under(firstHeading, {
    store: {
      flag: "store",
      value: "URL,URL",
      required: "No store to follow: give --store URL",
      help:
        "the store to follow: http://HOST:PORT or https://HOST:PORT of davit serve; several for members " +
        "of one store",
      read: one(readServerUrls),
    } satisfies Option<readonly URL[]>,
    storeTokenFile,
    copyFile: {
      flag: "copy-file",
      value: "FILE",
      help: "file of the last copy, mode 0600; after a restart it answers machines while the store is away",
      read: one(readText),
    } satisfies Option<string>,
  }),
  ...serviceOptions,
  ...under(assetsHeading, { fetchAssets }),
  ...under(storeHeading, {
    dataDir: directoryOption(
      "data-dir",
      "data directory of the davit serve at --store, on this computer: its local token goes there; no " +
        "variable sets this",
    ),
    ...storeTls,
  }),
  ...under(limitsHeading, { limits: limitsOfBoot }),
};
