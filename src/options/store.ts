/** The options of the store of `davit serve`, and of its listener for clients. */

import type { Address } from "../lib/text/address.ts";
import type { Option } from "./parsing.ts";
import {
  certificatePair,
  each,
  fileOption,
  newDirectoryOption,
  one,
  readAddressOrNone,
  readBytes,
  readChoice,
  readHost,
  readInterval,
  readObjectName,
  readServerUrl,
  readServiceAccount,
  readText,
  switchOption,
} from "./readers.ts";

const cluster = { name: "kubernetes", lack: "No cluster" };
const ownCertificate = { name: "storeOwnCertificate", lack: "No own certificate" };

export const storeOptions = {
  onDamage: {
    flag: "on-damage",
    value: "refuse|move-aside",
    preset: "refuse",
    help: "with a damaged data directory: refuse to start, or move it aside and fill an empty store from the source",
    read: one(readChoice(["refuse", "move-aside"])),
  } satisfies Option<"refuse" | "move-aside">,
  // The values in the store are outside Node's heap, so the limit of that heap does not limit them.
  storeQuotaBytes: {
    flag: "store-quota-bytes",
    value: "BYTES",
    preset: "1073741824",
    help: "limit of the names and values that clients write; at the limit the store refuses writes that enlarge it",
    read: one(readBytes),
  } satisfies Option<number>,
  ledgerMarkConfigMap: {
    flag: "ledger-mark-configmap",
    value: "NAME",
    preset: "davit-ledger",
    help:
      "ConfigMap in davit's own namespace that marks how far its ledger is; members of one store need the same one, " +
      "and davits with different stores need different ones",
    read: one(readObjectName),
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
};

export const storeListenerOptions = {
  storeAddress: {
    flag: "store-address",
    value: "HOST:PORT|none",
    preset: "127.0.0.1:2379",
    help:
      "address of the key API, for clients, followers and davit backup; an address other than loopback needs TLS and " +
      "authentication, or --store-insecure; none: no listener",
    read: one(readAddressOrNone),
  } satisfies Option<Address | "none">,
  storeAdvertiseUrl: {
    flag: "store-advertise-url",
    value: "URL",
    help:
      "the URL at which clients reach the store, as http://HOST:PORT; default: the store address; if that is a " +
      "wildcard, the first global address",
    read: one(readServerUrl),
  } satisfies Option<URL>,
  storeInsecure: switchOption(
    "store-insecure",
    "allow a --store-address other than loopback without TLS or authentication: anyone may read and write keys",
  ),
  ...certificatePair("TLS certificate of the store listener with its chain, PEM; davit follows changes of the file"),
  storeOwnCertificate: {
    ...switchOption(
      "store-own-certificate",
      "TLS with a certificate that davit makes and renews; clients trust the authority in DATA-DIR/certificate/ca.pem" +
        "; not with --store-etcd-endpoints",
    ),
    excludes: { name: "storeCertFile", excess: "Two certificates of the store" },
  },
  storeAllowedHosts: {
    flag: "store-allowed-host",
    value: "HOST",
    repeatable: true,
    help:
      "name or address by which clients reach the store, besides localhost and the host of --store-advertise-url: " +
      "davit's own certificate is valid for it, and a store without credentials answers requests that name it",
    read: each(readHost),
  } satisfies Option<readonly string[]>,
  storeCaConfigMap: {
    flag: "store-ca-configmap",
    value: "NAME",
    help: "existing ConfigMap in davit's own namespace; davit writes the authority of its certificate there, as ca.crt",
    read: one(readObjectName),
    needs: [cluster, ownCertificate],
  } satisfies Option<string>,
  storeClientCaFile: fileOption(
    "store-client-ca-file",
    "authorities, PEM; clients of the store need a certificate of one of them",
  ),
  storeTokenFile: fileOption(
    "store-token-file",
    "tokens, one per line; clients of the store need one of them, as Bearer or as the password of Basic",
  ),
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
};
