/** Opens a store: in a directory, where it handles a damaged log, or in etcd. */

import { join } from "node:path";
import type { Files } from "../lib/files/files.ts";
import { WalError } from "./core/log-port.ts";
import type { EtcdLogOptions } from "./etcd/etcd-log.ts";
import { Store, type StoreOptions } from "./store.ts";
import type { FileLogOptions } from "./wal/begin-log.ts";
import { startFailure } from "./wal/failures.ts";
import { logEndName } from "./wal/log-end.ts";
import { listSegments } from "./wal/recover.ts";
import { listSnapshots } from "./wal/snapshots.ts";
import { FileLog } from "./wal/wal.ts";

/**
 * What to do about a damaged log. `refuse` ends the start with a message. `move-aside` moves the files into a subfolder
 * and begins an empty store. davit fills it from its sources, so machines can boot before an operator repairs anything.
 */
export type OnDamage = "refuse" | "move-aside";

export interface OpenStoreOptions extends FileLogOptions, Omit<StoreOptions, "log" | "clock"> {
  readonly onDamage: OnDamage;
}

/** Opens the store, and handles damage as `onDamage` says. @throws {WalError} with one sentence for the operator. */
export async function openStore(options: OpenStoreOptions): Promise<Store> {
  try {
    return await open(options, () => Promise.resolve());
  } catch (error) {
    // Only damage justifies an empty store: the files of a newer davit are whole, and a failing disk needs another
    // remedy.
    const isDamage = error instanceof WalError && error.reason === "damaged";
    if (!isDamage || options.onDamage === "refuse") throw error;
    return await open(options, async () => {
      const aside = await moveAside(options.files, options.directory);
      options.log.error({ reason: error.message, movedTo: aside }, "store was damaged, it begins empty");
    });
  }
}

/** Locks the directory, calls `prepare`, and then reads the store. */
async function open(options: OpenStoreOptions, prepare: () => Promise<void>): Promise<Store> {
  const log = await FileLog.open(options);
  try {
    await prepare();
  } catch (error) {
    await log.stop();
    throw error;
  }
  return Store.open({ ...options, log });
}

export interface OpenEtcdStoreOptions extends EtcdLogOptions, Omit<StoreOptions, "log" | "clock"> {}

/**
 * Opens a store whose log is in etcd. The client of etcd takes time and memory, so it is loaded only now.
 * @throws {WalError} one sentence for the operator.
 */
export async function openEtcdStore(options: OpenEtcdStoreOptions): Promise<Store> {
  const { EtcdLog } = await import("./etcd/etcd-log.ts");
  return await Store.open({ ...options, log: await EtcdLog.open(options) });
}

const asideName = /^damaged-(\d+)$/;

/**
 * Moves the segments and snapshots of a damaged log into a new folder `damaged-<n>` inside its directory. It loses no
 * byte. The caller holds the directory's lock.
 *
 * It begins with the oldest segment, and syncs after each file. So a crash leaves a log without its beginning, which
 * the next start refuses, too. A crash never leaves a log without its end.
 * @returns the folder's path.
 * @throws {WalError} unusable.
 */
async function moveAside(files: Files, directory: string): Promise<string> {
  try {
    const numbers = (await files.list(directory)).map((name) => Number(asideName.exec(name)?.[1] ?? 0));
    const aside = join(directory, `damaged-${Math.max(0, ...numbers) + 1}`);
    await files.makeDirectory(aside);
    await files.syncDirectory(directory);
    const names = [...(await listSegments(files, directory)), ...(await listSnapshots(files, directory))];
    // `log-end` moves last: without it a log with a missing end could look whole.
    if ((await files.list(directory)).includes(logEndName)) names.push(logEndName);
    for (const name of names) {
      await files.rename(join(directory, name), join(aside, name));
      await files.syncDirectory(aside);
      await files.syncDirectory(directory);
    }
    return aside;
  } catch (error) {
    throw startFailure("Moving damaged files of", directory, error);
  }
}
