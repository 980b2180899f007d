/** Opens a store whose log is in etcd. */

import { EtcdLog, type EtcdLogOptions } from "./etcd/etcd-log.ts";
import { Store, type StoreOptions } from "./store.ts";

export type { SourceProof } from "./etcd/members.ts";

export interface OpenEtcdStoreOptions extends EtcdLogOptions, Omit<StoreOptions, "log" | "clock"> {}

/** @throws {WalError} one sentence for the operator. */
export async function openEtcdStore(options: OpenEtcdStoreOptions): Promise<Store> {
  return await Store.open({ ...options, log: await EtcdLog.open(options) });
}
