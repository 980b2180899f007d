/** Opens stores that several davits share: their logs are in etcd. */

import { hostname } from "node:os";
import { assert } from "../../lib/errors.ts";
import { diskFiles } from "../../lib/files/files.ts";
import { StartError } from "../../lib/start-error.ts";
import type { ServeConfig } from "../../options/serve.ts";
import { WalError } from "../../store/core/log-port.ts";
import { type OpenEtcdStoreOptions, openEtcdStore } from "../../store/open-store.ts";
import type { Store } from "../../store/store.ts";
import { isMoved } from "../../store/wal/begin-log.ts";
import { listSegments } from "../../store/wal/recover.ts";
import { advertisedAuthority } from "./advertise.ts";
import { etcdAccess } from "./etcd-access.ts";

type SharedStoreOptions = Pick<
  OpenEtcdStoreOptions,
  | "clock"
  | "log"
  | "random"
  | "proof"
  | "observeSyncSeconds"
  | "observeFailure"
  | "quotaBytes"
  | "maxWatchers"
  | "agelessRoot"
  | "snapshotInterval"
> & {
  readonly config: ServeConfig;
  readonly endpoints: readonly URL[];
  /** Ends the wait for etcd. */
  readonly stop: AbortSignal;
};

// etcd needs a second or two for an election.
const retryMs = 1_000;

type OpenAtOptions = SharedStoreOptions & Pick<OpenEtcdStoreOptions, "mayBegin" | "compact">;

/** @throws {StartError | WalError} one sentence for the operator. */
export async function openSharedStore(options: SharedStoreOptions): Promise<Store> {
  const { config } = options;
  const mayBegin = !(await prepareDirectory(config.dataDir));
  return await openAt(config.storeEtcdPrefix, { ...options, mayBegin, compact: !config.storeEtcdShared });
}

/**
 * Returns where the ledger's keys are in etcd: inside the prefix of the main store, so that a role of etcd covers both.
 * But outside the range from `leader` to `members/`, which the main store watches (`store/etcd/layout.ts`): `ledger/`
 * would be in it.
 */
export function ledgerPrefix(storePrefix: string): string {
  return `${storePrefix}permits/`;
}

/**
 * Opens the store of the ledger, below a prefix of its own. If the main store was moved here, the ledger was not: a new
 * one begins, and no grant names it.
 * @throws {StartError | WalError} one sentence for the operator.
 */
export async function openSharedLedger(options: SharedStoreOptions): Promise<Store> {
  // If davit compacts etcd, the main store does so for both.
  const prefix = ledgerPrefix(options.config.storeEtcdPrefix);
  return await openAt(prefix, { ...options, mayBegin: true, compact: false });
}

/** Opens a store. Waits while etcd does not answer or has no quorum, so members and etcds may start in any order. */
async function openAt(prefix: string, options: OpenAtOptions): Promise<Store> {
  const { clock, log, stop } = options;
  for (let said = ""; ; ) {
    try {
      return await tryToOpenAt(prefix, options);
    } catch (error) {
      if (!isOutage(error)) throw error;
      const { message: reason } = error;
      if (reason !== said) log.warn({ reason }, "waiting for etcd");
      said = reason;
      await clock.sleep(retryMs, stop);
      if (stop.aborted) throw error;
    }
  }
}

/** True while etcd does not answer, or has no quorum. */
function isOutage(error: unknown): error is WalError {
  return error instanceof WalError && error.reason === "readOnly";
}

async function tryToOpenAt(prefix: string, { config, stop: _, ...options }: OpenAtOptions): Promise<Store> {
  // The client of etcd takes time and memory: davit loads it only if needed.
  return await openEtcdStore({
    ...options,
    ...etcdAccess(config),
    prefix,
    leaseSeconds: Math.ceil(config.limits.storeEtcdLeaseMs / 1_000),
    member: { name: hostname(), clientUrls: [clientUrlOf(config)] },
  });
}

/**
 * Makes the data directory, which has only the local token and the certificate of this member.
 * @returns true if a store was moved from it. Then etcd has that store, or the move was not completed. A new one would
 *   hide the moved keys and tombstones.
 * @throws {StartError} if a store is in it that was not moved: its keys would seem to be lost.
 */
async function prepareDirectory(directory: string): Promise<boolean> {
  await diskFiles.makeDirectory(directory);
  const segments = await listSegments(diskFiles, directory);
  const wasMoved = await isMoved(diskFiles, directory);
  if (segments.length === 0 || wasMoved) return wasMoved;
  const advice = "move it with davit migrate-store, give another --data-dir, or leave out --store-etcd-endpoints";
  throw new StartError(`Two stores: "${directory}" has one, and --store-etcd-endpoints names another: ${advice}`);
}

/** Where clients reach this member. It also identifies the member among the others. */
function clientUrlOf({ storeAdvertiseUrl, storeAddress, storeCertFile }: ServeConfig): string {
  assert(storeAddress !== "none", "A member listens: src/options/serve.ts refuses one that does not");
  const scheme = storeCertFile === undefined ? "http" : "https";
  return storeAdvertiseUrl?.origin ?? `${scheme}://${advertisedAuthority(undefined, storeAddress)}`;
}
