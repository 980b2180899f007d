/**
 * Limits the bytes of names and values in the store. davit checks the quota before it logs a write. The check includes
 * writes that still wait for the disk. The log does not record the quota, so a changed quota affects only later writes.
 */

import { StoreError } from "../core/refusal.ts";
import type { Tree } from "../tree/tree.ts";
import type { SingleCommand } from "./command.ts";

// A slash and the 20 digits of the name that `createInOrder` generates.
const inOrderNameBytes = 21;

export class Quota {
  readonly #tree: Tree;
  readonly #quotaBytes: number;
  #reservedBytes = 0;

  constructor(tree: Tree, quotaBytes = Number.POSITIVE_INFINITY) {
    this.#tree = tree;
    this.#quotaBytes = quotaBytes;
  }

  /**
   * Reserves room for a write until `release`. A write that does not enlarge the store always fits.
   * @returns the reserved bytes.
   * @throws {StoreError} quotaExceeded.
   */
  reserve(command: SingleCommand): number {
    const growth = Math.max(0, growthOf(this.#tree, command));
    if (growth > 0 && this.#tree.bytes + this.#reservedBytes + growth > this.#quotaBytes) {
      const cause = `the quota of ${this.#quotaBytes} bytes would be exceeded; delete keys or raise it`;
      throw new StoreError("quotaExceeded", cause, 0);
    }
    this.#reservedBytes += growth;
    return growth;
  }

  release(bytes: number): void {
    this.#reservedBytes -= bytes;
  }
}

function growthOf(tree: Tree, command: SingleCommand): number {
  if (!("value" in command) || ("refresh" in command && command.refresh === true)) return 0;
  const isDirectory = "dir" in command && command.dir === true;
  const valueBytes = isDirectory ? 0 : Buffer.byteLength(command.value);
  if (command.kind !== "createInOrder") return tree.growthBy(command.path, valueBytes);
  // The command's path is the directory of the new file. If directories on this path are missing, davit makes them, and
  // their names take room, too.
  return valueBytes + inOrderNameBytes + tree.growthBy(command.path, 0);
}
