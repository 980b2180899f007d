/** Opens a store that several davits share: its log is in etcd. */

import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { diskFiles } from "../lib/files.ts";
import { StartError } from "../lib/start-error.ts";
import { readSmallFile } from "../lib/watched-files.ts";
import type { ServeConfig } from "../options/serve.ts";
import type { OpenEtcdStoreOptions } from "../store/open-etcd-store.ts";
import type { Store } from "../store/store.ts";
import { listSegments } from "../store/wal/recover.ts";
import { advertisedAuthority } from "./advertise.ts";

type SharedStoreOptions = Pick<
  OpenEtcdStoreOptions,
  | "clock"
  | "log"
  | "random"
  | "proof"
  | "observeSyncSeconds"
  | "quotaBytes"
  | "maxWatchers"
  | "agelessRoot"
  | "snapshotInterval"
> & { readonly config: ServeConfig; readonly endpoints: readonly URL[] };

/** @throws {StartError | WalError} one sentence for the operator. */
export async function openSharedStore({ config, endpoints, ...options }: SharedStoreOptions): Promise<Store> {
  await prepareDirectory(config.dataDir);
  // The client of etcd takes time and memory: davit loads it only if needed.
  const { openEtcdStore } = await import("../store/open-etcd-store.ts");
  const { storeEtcdUsername: username, storeEtcdPasswordFile: passwordFile } = config;
  return await openEtcdStore({
    ...options,
    endpoints,
    tls: {
      ca: textOf(config.storeEtcdCaFile),
      cert: textOf(config.storeEtcdCertFile),
      key: textOf(config.storeEtcdKeyFile),
    },
    credentials:
      username === undefined || passwordFile === undefined
        ? undefined
        : { username, password: async () => firstLineOf(await readSmallFile(passwordFile)) },
    prefix: config.storeEtcdPrefix,
    leaseSeconds: Math.ceil(config.storeEtcdLeaseMs / 1_000),
    member: { name: hostname(), clientUrls: [clientUrlOf(config)] },
  });
}

/**
 * Makes the data directory, which has only the local token and the certificate of this member.
 * @throws {StartError} if a store is in it: its keys would seem to be lost.
 */
async function prepareDirectory(directory: string): Promise<void> {
  await diskFiles.makeDirectory(directory);
  const segments = await listSegments(diskFiles, directory);
  if (segments.length === 0) return;
  const advice = "give another --data-dir, or leave out --store-etcd-endpoints";
  throw new StartError(`Two stores: "${directory}" has one, and --store-etcd-endpoints names another: ${advice}`);
}

/** Reads the file anew for each connection, because certificates are replaced while davit runs. */
function textOf(path: string | undefined): () => string | undefined {
  return () => (path === undefined ? undefined : readFileSync(path, "utf8"));
}

function firstLineOf(text: string): string {
  return text.split(/\r?\n/, 1)[0] ?? "";
}

/** Where clients reach this member. It also identifies the member among the others. */
function clientUrlOf({ storeAdvertiseUrl, storeAddress, storeCertFile }: ServeConfig): string {
  const scheme = storeCertFile === undefined ? "http" : "https";
  return storeAdvertiseUrl?.origin ?? `${scheme}://${advertisedAuthority(undefined, storeAddress)}`;
}
