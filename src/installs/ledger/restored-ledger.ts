/**
 * Selects what a restore takes from the ledger of a backup. The ledger is older than the lost one, so it may only close
 * permits:
 *
 * - The ledger itself is not restored: another one begins, and no grant names it.
 * - Each machine counts as installed, even if its install had failed or had not ended: it may have succeeded since.
 * - Labels that machines have reported are not restored: a machine may have reported others since.
 */

import { assert } from "../../lib/errors.ts";
import { isAtOrBelow } from "../../store/core/node.ts";
import type { StoredNode } from "../../store/tree/tree-walk.ts";
import { decodeEntry, encodeEntry, ledgerAddress, ledgerRootPath } from "./ledger-documents.ts";

/** Returns a node as a restored ledger has it; undefined for one that it does not have. */
export function restoredLedgerNode(node: StoredNode): StoredNode | undefined {
  if (!isAtOrBelow(node.path, ledgerRootPath)) return undefined;
  if (node.kind !== "file") return node;
  const address = ledgerAddress(node.path);
  if (address?.kind === "meta" || address?.kind === "marked") return undefined;
  // A document of a later davit stays: while there is one, nothing installs.
  return address?.kind === "entry" ? { ...node, value: restoredEntry(node.value) } : node;
}

function restoredEntry(text: string): string {
  const entry = decodeEntry(text);
  if (entry === undefined) return text;
  const { labels: _labels, ...kept } = entry;
  const restored = { ...kept, state: entry.state === "Installed" ? entry.state : ("Unconfirmed" as const) };
  assert(decodeEntry(encodeEntry(restored)) !== undefined, "A restored entry is readable");
  return encodeEntry(restored);
}
