/** What clients of the key API must not do: write davit's own documents, or read templates from Secrets. */

import { davitRoot, secretsRoot } from "../../model/documents.ts";
import { isAtOrBelow, type StorePath, storePath } from "../../store/core/node.ts";
import { StoreError } from "../../store/core/refusal.ts";

// `/machines` holds state of machines, such as their labels.
const reservedRoots = [storePath(davitRoot), storePath("/machines")];
const hiddenRoot = storePath(secretsRoot);

/** @throws {StoreError} reserved. */
export function refuseReserved(path: StorePath, index: number): void {
  if (reservedRoots.some((root) => isAtOrBelow(path, root))) throw new StoreError("reserved", path, index);
}

/** True for a path that must look absent. */
export function isSecret(path: StorePath): boolean {
  return isAtOrBelow(path, hiddenRoot);
}

/** @throws {StoreError} keyNotFound, as for a path that was never written. */
export function refuseSecret(path: StorePath, index: number): void {
  if (isSecret(path)) throw new StoreError("keyNotFound", hiddenRoot, index);
}
