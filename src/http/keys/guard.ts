/** What clients of the key API may not do: write what only davit writes, and see templates that came from Secrets. */

import { davitRoot, secretsRoot } from "../../model/documents.ts";
import { isAtOrBelow, type StorePath, storePath } from "../../store/node.ts";
import { StoreError } from "../../store/refusal.ts";

// `/machines` is for state of machines, such as their labels.
const reservedRoots = [storePath(davitRoot), storePath("/machines")];
const hiddenRoot = storePath(secretsRoot);

/** @throws {StoreError} reserved. */
export function refuseReserved(path: StorePath, index: number): void {
  if (reservedRoots.some((root) => isAtOrBelow(path, root))) throw new StoreError("reserved", path, index);
}

/** True for a path that looks as if nothing were there. */
export function isSecret(path: StorePath): boolean {
  return isAtOrBelow(path, hiddenRoot);
}

/** @throws {StoreError} keyNotFound, as for a path that was never written. */
export function refuseSecret(path: StorePath, index: number): void {
  if (isSecret(path)) throw new StoreError("keyNotFound", hiddenRoot, index);
}
