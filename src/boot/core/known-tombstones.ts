/**
 * Recently removed Groups, with their selectors and ranks. They decide which machines wait:
 *
 * - A removed Group keeps its rank until its tombstone ends. A machine that it selected does not get a Group that ranks
 *   lower: the machine waits. It gets a Group that ranks higher, because that Group won before, too.
 * - There is an exception if the removed Group named its machines. A Group that is as specific on the same labels, such
 *   as a renamed one, takes the machines immediately. It does not if its priority is lower, or if it installs.
 * - If the removed Group named no machine, only an Install waits.
 * - Two Groups that tie, or that name one machine by different labels, keep an Install from that machine. If one of
 *   them is removed, it may return, so the Install still waits. It does not wait if the two Groups have the same
 *   outcome.
 *
 * The cost of a check does not grow with the number of named machines.
 */

import { hash } from "node:crypto";
import { type Labels, valuesOf } from "../../model/labels/labels.ts";
import {
  decodeTombstone,
  type GoneSelector,
  selectorPlace,
  type TombstonePlace,
  tombstoneLabels,
  tombstoneSelectors,
} from "../../model/objects/documents.ts";
import { type Group, matches, toGroup } from "../../model/objects/group.ts";
import { isSameNamespace, mayHaveBarred, outcomeText, outranks } from "../../model/selection/contest.ts";
import { SelectorIndex } from "../../model/selection/selector-index.ts";
import { isAsSpecific } from "../../model/selection/specificity.ts";

/** A removed Group, as its tombstone records it. */
interface GoneGroup extends Group {
  /** See `TombstonePlace`. */
  readonly tenant: string | undefined;
  /** False for a tombstone of an older davit, which records only the selector. */
  readonly isRanked: boolean;
  /** See `GoneRank`. */
  readonly outcome: string | undefined;
}

type GoneByValue = Map<string, readonly GoneGroup[]>;

export class KnownTombstones {
  /** Tombstones by label, then by the label's value. */
  readonly #named: ReadonlyMap<string, GoneByValue> = new Map(tombstoneLabels.map((label) => [label, new Map()]));
  /** Tombstones of Groups that named no machine, by the value in their path. */
  readonly #broad: GoneByValue = new Map();
  readonly #broadIndex = new SelectorIndex<GoneGroup>();
  /**
   * Hashes of Groups' outcomes. Each is computed once, and only for a Group whose machines may have to wait for a
   * removed Group.
   */
  readonly #outcomes = new WeakMap<Group, string>();
  #count = 0;
  /** True if there are no tombstones. It is a plain member because every request reads it. */
  isEmpty = true;

  /**
   * Adds a tombstone. If the text is unreadable, but the path names a machine, that machine waits, too.
   * @returns false if the text is unreadable and the path names no machine. Then the older tombstone stays.
   */
  learn(place: TombstonePlace, text: string): boolean {
    const { label, value, tenant } = place;
    const stone = decodeTombstone(text);
    if (label === selectorPlace && stone?.labels === undefined) return false;
    this.forget(place);
    const selectors = tombstoneSelectors(stone ?? {}, label, value);
    // The index needs a unique name for each Group.
    const gone = selectors.map((each) => toGone(each, `${this.#count++}`, tenant));
    const stones = this.#stonesAt(label);
    stones?.set(value, [...(stones.get(value) ?? []), ...gone]);
    if (label === selectorPlace) for (const group of gone) this.#broadIndex.add(group);
    this.isEmpty = false;
    return true;
  }

  forget({ label, value, tenant }: TombstonePlace): void {
    const stones = this.#stonesAt(label);
    const all = stones?.get(value) ?? [];
    const left = all.filter((group) => group.tenant !== tenant);
    if (left.length > 0) stones?.set(value, left);
    else stones?.delete(value);
    if (label === selectorPlace) for (const group of all) if (group.tenant === tenant) this.#broadIndex.remove(group);
    this.isEmpty = this.#broad.size === 0 && [...this.#named.values()].every(({ size }) => size === 0);
  }

  #stonesAt(label: string): GoneByValue | undefined {
    return label === selectorPlace ? this.#broad : this.#named.get(label);
  }

  /** True if a tombstone has this label, with any value. */
  has(label: string): boolean {
    return (this.#named.get(label)?.size ?? 0) > 0 || this.#broadIndex.speaksOf(label);
  }

  /**
   * True if a machine must wait for a recently removed Group that selected it.
   * @param group the Group that the machine would get; undefined for none.
   * @param isInstall returns true for a Group whose Profile overwrites disks.
   */
  waitsForRemovedGroup(labels: Labels, group: Group | undefined, isInstall: (group: Group) => boolean): boolean {
    for (const [label, tombstones] of this.#named) {
      const isHeldBack = (each: GoneGroup) =>
        matches(each, labels) && this.#holdsBack(each, group, { labels, isInstall });
      if (valuesOf(labels, label).some((value) => tombstones.get(value)?.some(isHeldBack) === true)) return true;
    }
    if (this.#broad.size === 0 || group === undefined || !isInstall(group)) return false;
    return this.#broadIndex
      .listsFor(labels)
      .some((list) => list.some((each) => this.#keepsInstall(each, group, labels) && matches(each, labels)));
  }

  /** True if a removed Group that named the machine makes it wait instead of getting `group`. */
  #holdsBack(
    gone: GoneGroup,
    group: Group | undefined,
    { labels, isInstall }: { readonly labels: Labels; readonly isInstall: (group: Group) => boolean },
  ): boolean {
    if (group === undefined) return true;
    if (!gone.isRanked) return isInstall(group) || !isAsSpecific(group, gone);
    if (isInstall(group)) return this.#keepsInstall(gone, group, labels);
    return outranks(gone, group, labels) && (group.priority < gone.priority || !isAsSpecific(group, gone));
  }

  /** True if the machine must not be installed by `group`, because of a removed Group. */
  #keepsInstall(gone: GoneGroup, group: Group, labels: Labels): boolean {
    if (outranks(gone, group, labels)) return true;
    // A tombstone without an outcome comes from an older davit or from several Groups. It does not record how much its
    // Groups asked for.
    if (gone.outcome === undefined && group.priority <= gone.priority && areRankedAlike(gone, group)) return true;
    return mayHaveBarred(gone, group, labels) && gone.outcome !== this.#outcomeOf(group);
  }

  #outcomeOf(group: Group): string {
    const known = this.#outcomes.get(group);
    if (known !== undefined) return known;
    const outcome = hash("sha256", outcomeText(group), "hex");
    this.#outcomes.set(group, outcome);
    return outcome;
  }
}

/**
 * True if all labels and expressions of both Groups count for their rank. Between namespaces, some expressions of a
 * tenant's Group do not count (`tenant-rank.ts`).
 */
function areRankedAlike(gone: Group, group: Group): boolean {
  return isSameNamespace(gone, group) || (!gone.isTenant && !group.isTenant);
}

function toGone({ labels, expressions, rank }: GoneSelector, name: string, tenant: string | undefined): GoneGroup {
  const spec = { profile: "", selector: labels, expressions, matchAll: false, hold: false, metadata: {} };
  const group = toGroup(rank?.namespace ?? "", name, { ...spec, priority: rank?.priority ?? 0 }, rank);
  return { ...group, tenant, isRanked: rank !== undefined, outcome: rank?.outcome };
}
