/** Keeps clients of the key API from writing davit's own documents, and from reading templates of Secrets. */

import { davitRoot, secretsRoot } from "../../model/objects/documents.ts";
import { isAtOrBelow, type StorePath, storePath } from "../../store/core/node.ts";
import { StoreError } from "../../store/core/refusal.ts";
import type { Store } from "../../store/store.ts";

// `/machines` is reserved for the state of machines. davit writes nothing there so far.
const documentsRoot = storePath(davitRoot);
const reservedRoots = [documentsRoot, storePath("/machines")];
const hiddenRoot = storePath(secretsRoot);

/** @throws {StoreError} reserved, for a path to which only davit may write. */
export function refuseReserved(path: StorePath, index: number): void {
  if (reservedRoots.some((root) => isAtOrBelow(path, root))) throw new StoreError("reserved", path, index);
}

/** True for a path whose answer may have davit's own documents: that of a document, or of a directory above it. */
export function mayHaveDocuments(path: StorePath, store: Pick<Store, "hasDirectory">): boolean {
  return isAtOrBelow(path, documentsRoot) || (isAtOrBelow(documentsRoot, path) && store.hasDirectory(documentsRoot));
}

/** True for a path that clients must see as absent. */
export function isSecret(path: StorePath): boolean {
  return isAtOrBelow(path, hiddenRoot);
}

/** @throws {StoreError} keyNotFound, as for a path that was never written. */
export function refuseSecret(path: StorePath, index: number): void {
  if (isSecret(path)) throw new StoreError("keyNotFound", hiddenRoot, index);
}
