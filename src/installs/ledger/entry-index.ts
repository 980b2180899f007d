/**
 * Finds entries by the identities of their machines. Each boot of a known machine looks here, so for the usual machine
 * `soleOf` makes no new string, list or map.
 */

import { MultiMap, Several } from "../../lib/multi-map.ts";
import type { LabelPair, Labels } from "../../model/labels/labels.ts";
import { identitiesOf } from "../../model/objects/machine.ts";
import type { LedgerEntry } from "../../model/permits/permit.ts";
import { recognised } from "../../model/permits/recognised.ts";

/** An entry with its labels as look-ups need them. A changed entry is a new object. */
interface IndexedEntry {
  readonly entry: LedgerEntry;
  /** What the machine has reported; undefined if any of it ends at a time. */
  readonly lasting: readonly LabelPair[] | undefined;
}

export class EntryIndex {
  /**
   * By the bare values of identities. No uuid equals a MAC address, and requests have the values without the kind, so a
   * look-up needs no new key.
   */
  readonly #byValue = new MultiMap<IndexedEntry>();

  add(entry: LedgerEntry): void {
    const labels = Object.entries(entry.labels ?? {});
    const isLasting = labels.every(([, { untilMs }]) => untilMs === undefined);
    const lasting = isLasting ? labels.map(([name, { value }]) => [name, value] as const) : undefined;
    const indexed = { entry, lasting };
    for (const identity of entry.identities) this.#byValue.add(bareValue(identity), indexed);
  }

  /** @param entry the same object that was added. */
  remove(entry: LedgerEntry): void {
    for (const value of entry.identities.map(bareValue)) {
      const indexed = this.#byValue.of(value).find((other) => other.entry === entry);
      if (indexed !== undefined) this.#byValue.remove(value, indexed);
    }
  }

  /** Returns the distinct entries that have one of these identities. */
  entriesOf(identities: readonly string[]): readonly LedgerEntry[] {
    const found = identities.flatMap((identity) => this.#byValue.of(bareValue(identity)));
    return [...new Set(found)].map(({ entry }) => entry);
  }

  /**
   * Returns the entry of a request's uuid and mac; undefined if there is none, or if it does not count for all of them
   * (`recognised`).
   * @param listed the identities of the machine's Machine; undefined without one.
   */
  soleOf(request: Labels, listed: readonly string[] | undefined): IndexedEntry | undefined {
    const byUuid = this.#byValue.slot(request.get("uuid") ?? "");
    const byMac = this.#byValue.slot(request.get("mac") ?? "");
    const found = byUuid ?? byMac;
    if (found === undefined || found instanceof Several) return undefined;
    // The usual entry has both.
    if (byUuid === byMac) return found;
    if (byUuid !== undefined && byMac !== undefined) return undefined;
    const { isClear } = recognised({ identities: identitiesOf(request), ...(listed && { listed }) }, this);
    return isClear ? found : undefined;
  }
}

function bareValue(identity: string): string {
  return identity.slice(identity.indexOf("/") + 1);
}
