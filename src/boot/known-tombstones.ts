/**
 * What the boot service knows of Groups that were removed a moment ago: their selectors and ranks. It decides which
 * machines wait for them:
 *
 * - A removed Group keeps its rank until its tombstone ends: a machine that it selected waits rather than get a Group
 * that ranks behind it. It never waits for a Group that outranks it: that one won before, and wins now.
 * - Where the Group named its machines, one that asks for as much of the same labels takes them at once all the same, such
 *   as the one that takes its place under another name, unless it has a lower priority or installs.
 * - Where it did not, only an Install waits.
 *
 * A look at them costs the same however many machines were named.
 */

import { outranks } from "../model/contest.ts";
import {
  decodeTombstone,
  type GoneSelector,
  selectorPlace,
  tombstoneLabels,
  tombstoneSelectors,
} from "../model/documents.ts";
import { type Group, matches, toGroup } from "../model/group.ts";
import type { Labels } from "../model/labels.ts";
import { SelectorIndex } from "../model/selector-index.ts";
import { isAsSpecific } from "../model/specificity.ts";

/** Where a tombstone is. */
interface Place {
  readonly label: string;
  readonly value: string;
}

/** A Group that was removed, as its tombstone records it. */
interface GoneGroup extends Group {
  /** False for a tombstone of an older davit, which records only the selector. */
  readonly isRanked: boolean;
}

export class KnownTombstones {
  /** By label, then by its value. */
  readonly #named: ReadonlyMap<string, Map<string, readonly GoneGroup[]>> = new Map(
    tombstoneLabels.map((label) => [label, new Map()]),
  );
  /** Of Groups that named no machine, by the value of their place. */
  readonly #broad = new Map<string, readonly GoneGroup[]>();
  readonly #broadIndex = new SelectorIndex<GoneGroup>();
  /** Asked with every request: nearly always it is so. */
  isEmpty = true;

  /** One that cannot be read counts, too: it then says no more than that there is one. */
  learn({ label, value }: Place, text: string): void {
    const gone = tombstoneSelectors(decodeTombstone(text) ?? {}, label, value).map(toGone);
    this.forget({ label, value });
    this.isEmpty = false;
    if (label !== selectorPlace) {
      this.#named.get(label)?.set(value, gone);
      return;
    }
    this.#broad.set(value, gone);
    for (const group of gone) this.#broadIndex.add(group);
  }

  forget({ label, value }: Place): void {
    this.#named.get(label)?.delete(value);
    if (label === selectorPlace) {
      for (const group of this.#broad.get(value) ?? []) this.#broadIndex.remove(group);
      this.#broad.delete(value);
    }
    this.isEmpty = this.#broad.size === 0 && [...this.#named.values()].every(({ size }) => size === 0);
  }

  /** True while there is one for any value of a label, or of a Group that asked for it. */
  has(label: string): boolean {
    return (this.#named.get(label)?.size ?? 0) > 0 || this.#broadIndex.speaksOf(label);
  }

  /**
   * True when a machine has to wait for a Group that selected it and was removed a moment ago.
   * @param group that the machine would get, undefined for none; `isInstall` tells whether its Profile overwrites disks.
   */
  isBereft(labels: Labels, group: Group | undefined, isInstall: (group: Group) => boolean): boolean {
    for (const [label, tombstones] of this.#named) {
      const value = labels.get(label);
      const gone = value === undefined ? undefined : tombstones.get(value);
      if (gone?.some((each) => matches(each, labels) && holdsBack(each, group, { labels, isInstall }))) return true;
    }
    if (this.#broad.size === 0 || group === undefined || !isInstall(group)) return false;
    return this.#broadIndex
      .listsFor(labels)
      .some((list) => list.some((each) => outranks(each, group, labels) && matches(each, labels)));
  }
}

function toGone({ labels, expressions, rank }: GoneSelector): GoneGroup {
  const spec = { profile: "", selector: labels, expressions, matchAll: false, hold: false, metadata: {} };
  const group = toGroup(rank?.namespace ?? "", "", { ...spec, priority: rank?.priority ?? 0 }, rank);
  return { ...group, isRanked: rank !== undefined };
}

/** True when a Group that named a machine, and was removed, keeps it from another one. */
function holdsBack(
  gone: GoneGroup,
  group: Group | undefined,
  { labels, isInstall }: { readonly labels: Labels; readonly isInstall: (group: Group) => boolean },
): boolean {
  if (group === undefined) return true;
  if (!gone.isRanked) return !isAsSpecific(group, gone);
  if (!outranks(gone, group, labels)) return false;
  return group.priority < gone.priority || !isAsSpecific(group, gone) || isInstall(group);
}
