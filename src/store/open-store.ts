/** Opens the store in a directory, and handles a damaged log. */

import { WalError } from "./core/log-port.ts";
import { Store, type StoreOptions } from "./store.ts";
import type { FileLogOptions } from "./wal/file-log-options.ts";
import { moveAside } from "./wal/move-aside.ts";
import { FileLog } from "./wal/wal.ts";

/**
 * `refuse`: the start ends with a message. `move-aside`: the files are kept in a subfolder, and a new store begins
 * empty, so that a rack can boot at three in the morning, from what its sources say.
 */
export type OnDamage = "refuse" | "move-aside";

export interface OpenStoreOptions extends FileLogOptions, Omit<StoreOptions, "log" | "clock"> {
  readonly onDamage: OnDamage;
}

/** @throws {WalError} one sentence for the operator. */
export async function openStore(options: OpenStoreOptions): Promise<Store> {
  try {
    return await open(options, () => Promise.resolve());
  } catch (error) {
    // These are no damage: another version's files are whole, and emptying an unreadable disk does not help.
    const isDamage = error instanceof WalError && error.reason === "damaged";
    if (!isDamage || options.onDamage === "refuse") throw error;
    return await open(options, async () => {
      const aside = await moveAside(options.files, options.directory);
      options.log.error({ reason: error.message, movedTo: aside }, "store was damaged, it begins empty");
    });
  }
}

/** @param prepare is called while the directory is locked, before it is read. */
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
