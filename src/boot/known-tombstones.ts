/**
 * What the boot service knows of Groups that went a moment ago: the selectors that they had, by the labels under which
 * they left a tombstone. A look at them costs the same however many there are.
 */

import { decodeTombstone, tombstoneLabels, tombstoneSelectors } from "../model/documents.ts";
import { toRequirement } from "../model/expression.ts";
import { type Group, matches, type Selection } from "../model/group.ts";
import type { Labels } from "../model/labels.ts";
import { isAsSpecific } from "../model/specificity.ts";

/** Where a tombstone is. */
interface Place {
  readonly label: string;
  readonly value: string;
}

export class KnownTombstones {
  /** By label, then by its value. */
  readonly #selectors: ReadonlyMap<string, Map<string, readonly Selection[]>> = new Map(
    tombstoneLabels.map((label) => [label, new Map()]),
  );

  /** One that cannot be read counts, too: it then says no more than that there is one. */
  learn({ label, value }: Place, text: string): void {
    const selectors = tombstoneSelectors(decodeTombstone(text) ?? {}, label, value);
    this.#selectors.get(label)?.set(
      value,
      selectors.map(({ labels, expressions }) => ({
        selector: labels,
        expressions: expressions.map(toRequirement),
      })),
    );
  }

  forget({ label, value }: Place): void {
    this.#selectors.get(label)?.delete(value);
  }

  /** True while there is one for any value of a label. */
  has(label: string): boolean {
    return (this.#selectors.get(label)?.size ?? 0) > 0;
  }

  /** True when a Group that selected this machine went a moment ago, and this one says less of its labels. */
  isBereft(labels: Labels, group: Group | undefined): boolean {
    for (const [label, tombstones] of this.#selectors) {
      // Nearly always there is none.
      if (tombstones.size === 0) continue;
      const value = labels.get(label);
      const selectors = value === undefined ? undefined : tombstones.get(value);
      if (selectors?.some((gone) => matches(gone, labels) && !(group && isAsSpecific(group, gone)))) return true;
    }
    return false;
  }
}
