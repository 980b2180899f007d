/** Finds the machines at an address that may fetch their script again. */

import { isRepeatable, type LedgerEntry } from "../model/permits/permit.ts";
import type { KnownLedger } from "./known-ledger.ts";

export class ClaimedAddresses {
  readonly #known: KnownLedger;
  /** The ids of entries that are Claimed, by their last address. */
  #ids = new Map<string, Set<string>>();
  readonly #addresses = new Map<string, string>();

  constructor(known: KnownLedger) {
    this.#known = known;
    known.onChange((entries) => this.#update(entries));
  }

  /** Returns the ids of the entries at this address. */
  at(address: string): readonly string[] {
    const ids = [...(this.#ids.get(address) ?? [])];
    const { nowMs } = this.#known;
    return ids.filter((id) => {
      const entry = this.#known.entries.get(id);
      return entry !== undefined && isRepeatable(entry, nowMs);
    });
  }

  #update(entries: readonly LedgerEntry[] | undefined): void {
    if (entries === undefined) {
      this.#ids.clear();
      this.#addresses.clear();
    }
    for (const { id } of entries ?? this.#known.underWay.values()) {
      this.#remove(id);
      const entry = this.#known.underWay.get(id);
      const [address] = entry?.addresses ?? [];
      if (entry?.state === "Claimed" && address !== undefined) this.#add(id, address);
    }
  }

  #add(id: string, address: string): void {
    const ids = this.#ids.get(address) ?? new Set();
    this.#ids.set(address, ids.add(id));
    this.#addresses.set(id, address);
  }

  #remove(id: string): void {
    const address = this.#addresses.get(id);
    if (address === undefined) return;
    this.#addresses.delete(id);
    const ids = this.#ids.get(address);
    ids?.delete(id);
    if (ids?.size === 0) this.#ids.delete(address);
  }
}
