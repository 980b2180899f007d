/** The port to the ledger: what statuses show of it. The ledger's copy in this process implements it. */

import type { LedgerEntry, LedgerView } from "../../model/permits/permit.ts";

export interface LedgerFacts extends LedgerView {
  /**
   * Calls the listener after each change. @param listener receives the entries that changed; undefined if anything may
   * have changed.
   * @returns a function that ends the calls.
   */
  onChange(listener: (entries: readonly LedgerEntry[] | undefined) => void): () => void;
}
