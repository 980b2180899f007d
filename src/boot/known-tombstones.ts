/**
 * What the boot service knows of Groups that went a moment ago: the selectors that they had, by the labels under which
 * they left a tombstone. A look at them costs the same however many there are.
 */

import { decodeTombstone, type TombstoneLabel, tombstoneLabels, tombstoneSelectors } from "../model/documents.ts";
import { type Group, hasAll } from "../model/group.ts";
import type { Labels } from "../model/labels.ts";

/** Where a tombstone is. */
interface Place {
  readonly label: TombstoneLabel;
  readonly value: string;
}

export class KnownTombstones {
  readonly #selectors: Readonly<Record<TombstoneLabel, Map<string, readonly Labels[]>>> = {
    uuid: new Map(),
    mac: new Map(),
  };

  /** One that cannot be read counts, too: it then says no more than that there is one. */
  learn({ label, value }: Place, text: string): void {
    const selectors = tombstoneSelectors(decodeTombstone(text) ?? {}, label, value);
    this.#selectors[label].set(
      value,
      selectors.map((selector) => new Map(Object.entries(selector))),
    );
  }

  forget({ label, value }: Place): void {
    this.#selectors[label].delete(value);
  }

  /** True when a Group that selected this machine went a moment ago, and this one selects it by fewer labels or others. */
  isBereft(labels: Labels, group: Group | undefined): boolean {
    return tombstoneLabels.some((label) => {
      const tombstones = this.#selectors[label];
      // Nearly always there is none.
      if (tombstones.size === 0) return false;
      const value = labels.get(label);
      const selectors = value === undefined ? undefined : tombstones.get(value);
      return selectors?.some((selector) => hasAll(selector, labels) && !isAsSpecific(group, selector)) === true;
    });
  }
}

/** Both match the machine, so that labels of one name have one value. */
function isAsSpecific(group: Group | undefined, selector: Labels): boolean {
  return group !== undefined && [...selector.keys()].every((label) => group.selector.has(label));
}
