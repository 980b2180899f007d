/**
 * Finds the winning group for a machine's labels, at a cost that does not grow with the number of groups.
 *
 * Each group is filed under one label of its selector: the label that the fewest groups share; between equals `uuid`,
 * then `mac`. An expression `In` counts as such a label, and its group is filed under every value. A group can only
 * match a machine that has this label, so a search looks into one bucket for each label of the machine, plus the groups
 * that match all. Each bucket is sorted, the winning group first, so its first match is its best. Where a group is
 * filed never changes an answer, only the speed of the search.
 *
 * A group that names no value at all, such as with `serial Prefix`, is filed under the label's name. Such groups cost
 * more: every machine with the label is compared with them in order, until one matches or a better one is known.
 */

import { areNamesakes, type Contest, isRival, isSameNamespace, settle } from "./contest.ts";
import { isPositive } from "./expression.ts";
import { compareGroups, type Group, matches } from "./group.ts";
import { identityLabels, type Labels } from "./labels.ts";
import { namesValueOf } from "./specificity.ts";

/** Groups filed under one label that several have. */
class Bucket<Entry extends object> {
  /** In winning order. */
  readonly groups: Entry[] = [];
  /** How many groups have this label in their selector, wherever they are filed. */
  sharers = 0;
  /** Groups that have no rival in this bucket for any machine. Small buckets record none: a search is fast. */
  calm: WeakSet<Entry> | undefined;
}

/** Comparing this many groups takes less time than parsing a request. */
const fewGroups = 16;

/**
 * The entry for a label. Nearly always one group has the label, and then there is no bucket: with 100,000 groups each
 * further object on the path is a wait for memory.
 */
type IndexSlot<Entry extends object> = Entry | Bucket<Entry>;

/** A label, and the values under which a group can be filed: one, or those of an expression. */
type Handle = readonly [label: string, values: readonly string[]];

export class SelectorIndex<Entry extends Group> {
  /** Label, then value. */
  readonly #places = new Map<string, Map<string, IndexSlot<Entry>>>();
  /** By label: groups that ask for this label but name no value of any label. */
  readonly #byName = new Map<string, Bucket<Entry>>();
  readonly #everywhere = new Bucket<Entry>();
  /** How many groups use an identity label, by label. */
  readonly #speakers = new Map<string, number>();

  /** Files all groups at once, which sorts each bucket only once. */
  constructor(groups: Iterable<Entry> = []) {
    const all = [...groups];
    for (const group of all) this.#count(group, 1);
    for (const group of all.toSorted(compareGroups)) {
      for (const bucket of this.#rarest(group)) bucket.groups.push(group);
    }
    for (const group of all) this.#settle(group);
  }

  add(group: Entry): void {
    this.#count(group, 1);
    for (const bucket of this.#rarest(group)) {
      bucket.groups.splice(positionIn(bucket.groups, group), 0, group);
      bucket.calm = undefined;
    }
    this.#settle(group);
  }

  /** Removes a group that was added: the same object. */
  remove(group: Entry): void {
    const filedIn = this.#filedIn(group);
    if (filedIn.length === 0) return;
    for (const bucket of filedIn) {
      bucket.groups.splice(positionIn(bucket.groups, group), 1);
      bucket.calm = undefined;
    }
    this.#count(group, -1);
    this.#settle(group);
  }

  /**
   * The first group in order that matches these labels, or undefined when none does. It gets the machine unless it has
   * rivals.
   */
  find(labels: Labels): Entry | undefined {
    let best = this.#everywhere.groups.find((group) => matches(group, labels));
    for (const [label, value] of labels) {
      const place = this.#places.get(label)?.get(value);
      const found = place && firstMatch(place, labels);
      if (found !== undefined && (best === undefined || compareGroups(found, best) < 0)) best = found;
    }
    return this.#byName.size === 0 ? best : this.#bestByName(labels, best);
  }

  /**
   * Groups of the same priority that name the same machine by other identity labels. None for a group that names no
   * machine, and none of another tenant: the claims have decided between tenants, and a tenant must not make other
   * tenants' machines wait.
   */
  namesakesOf(group: Group, labels: Labels): readonly Entry[] {
    const own = identityLabels.filter((label) => namesValueOf(group, label));
    const others = identityLabels.filter((label) => !own.includes(label) && this.#isNamed(label, labels.get(label)));
    if (own.length === 0 || others.length === 0) return [];
    const isNamesake = (other: Entry) =>
      (!other.isTenant || isSameNamespace(group, other)) && areNamesakes(group, other) && matches(other, labels);
    // A group that names a machine is filed under a value of one of its labels.
    return [...labels].flatMap(([label, value]) => {
      const place = this.#places.get(label)?.get(value);
      if (place === undefined) return [];
      return (place instanceof Bucket ? place.groups : [place]).filter(isNamesake);
    });
  }

  #isNamed(label: string, value: string | undefined): boolean {
    return value !== undefined && this.#places.get(label)?.has(value) === true;
  }

  /** True when the group that `find` returned for these labels has a rival for the machine. */
  hasRival(first: Entry, labels: Labels): boolean {
    if (first.isTenant) return this.#hasRivalAnywhere(first, labels);
    // Nearly every group has a value of a label for itself, and a rival would share it.
    for (const [label, value] of labels) if (this.#places.get(label)?.get(value) === first) return false;
    return this.#bucketsFor(handlesOf(first), labels).some((bucket) => hasRivalIn(bucket, first, labels));
  }

  /** As `hasRival`, for a tenant's group: a group of another namespace may beat it by other labels. */
  #hasRivalAnywhere(first: Entry, labels: Labels): boolean {
    for (const [label, value] of labels) {
      const place = this.#places.get(label)?.get(value);
      if (place instanceof Bucket ? hasRivalIn(place, first, labels) : place && isRivalFor(place, first, labels))
        return true;
      const named = this.#byName.get(label);
      if (named !== undefined && hasRivalIn(named, first, labels)) return true;
    }
    return hasRivalIn(this.#everywhere, first, labels);
  }

  /** Decides between all groups that match these labels. */
  settle(labels: Labels): Contest<Entry> {
    const matching = this.listsFor(labels).flatMap((groups) => groups.filter((group) => matches(group, labels)));
    return settle(matching, labels);
  }

  /** True when a group uses this identity label. */
  speaksOf(label: string): boolean {
    return (this.#speakers.get(label) ?? 0) > 0;
  }

  /** Lists that together hold every group that matches these labels, and others. Each begins with its best group. */
  listsFor(labels: Labels): readonly (readonly Entry[])[] {
    const lists: (readonly Entry[])[] = [this.#everywhere.groups];
    for (const [label, value] of labels) {
      const place = this.#places.get(label)?.get(value);
      if (place !== undefined) lists.push(place instanceof Bucket ? place.groups : [place]);
      lists.push(this.#byName.get(label)?.groups ?? []);
    }
    return lists;
  }

  /** The most groups that one lookup may have to look at. */
  get largestBucket(): number {
    const places = [...this.#places.values()].flatMap((values) => [...values.values()]);
    return [...places, ...this.#byName.values()].reduce(
      (most, place) => Math.max(most, place instanceof Bucket ? place.groups.length : 1),
      0,
    );
  }

  /** The buckets that may hold groups that match the machine by the same labels as a group with these handles. */
  #bucketsFor(handles: readonly Handle[], labels: Labels): readonly Bucket<Entry>[] {
    if (handles.length === 0)
      return [this.#everywhere, ...[...labels.keys()].flatMap((name) => this.#byName.get(name) ?? [])];
    return handles.flatMap(([label]) => {
      const place = this.#places.get(label)?.get(labels.get(label) ?? "");
      return place instanceof Bucket ? [place] : [];
    });
  }

  /** As `find`, for the groups that are filed by name. @param best the winner of all others. */
  #bestByName(labels: Labels, best: Entry | undefined): Entry | undefined {
    let winner = best;
    for (const label of labels.keys()) {
      const groups = this.#byName.get(label)?.groups ?? [];
      const end = winner === undefined ? groups.length : positionIn(groups, winner);
      const at = groups.findIndex((group, index) => index >= end || matches(group, labels));
      if (at >= 0 && at < end) winner = groups[at];
    }
    return winner;
  }

  /** The buckets that a group is filed in; none for a group that was not added. */
  #filedIn(group: Entry): readonly Bucket<Entry>[] {
    for (const [label, values] of handlesOf(group)) {
      const [value] = values;
      const place = value === undefined ? undefined : this.#places.get(label)?.get(value);
      if (place !== undefined && holds(place, group)) return this.#buckets(label, values);
    }
    const others = [...namesOf(group).flatMap((name) => this.#byName.get(name) ?? []), this.#everywhere];
    return others.filter((bucket) => holds(bucket, group));
  }

  /** The buckets to file a group in; its labels are counted already. */
  #rarest(group: Entry): readonly Bucket<Entry>[] {
    const handles = handlesOf(group).toSorted(compareFiling);
    let rarest: readonly Bucket<Entry>[] | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const [label, values] of handles) {
      const buckets = this.#buckets(label, values);
      const sharers = buckets.reduce((most, bucket) => Math.max(most, bucket.sharers), 0);
      if (sharers < fewest) [rarest, fewest] = [buckets, sharers];
    }
    return rarest ?? [this.#smallestByName(group) ?? this.#everywhere];
  }

  #smallestByName(group: Entry): Bucket<Entry> | undefined {
    let smallest: Bucket<Entry> | undefined;
    for (const name of namesOf(group)) {
      const bucket = this.#byName.get(name) ?? new Bucket<Entry>();
      this.#byName.set(name, bucket);
      if (smallest === undefined || bucket.groups.length < smallest.groups.length) smallest = bucket;
    }
    return smallest;
  }

  #count(group: Entry, change: 1 | -1): void {
    const { selector, expressions } = group;
    for (const label of identityLabels) {
      if (!Object.hasOwn(selector, label) && !expressions.some(({ key }) => key === label)) continue;
      this.#speakers.set(label, (this.#speakers.get(label) ?? 0) + change);
    }
    for (const [label, values] of handlesOf(group)) {
      for (const bucket of this.#buckets(label, values)) bucket.sharers += change;
    }
  }

  #buckets(label: string, values: readonly string[]): readonly Bucket<Entry>[] {
    return values.map((value) => this.#bucket(label, value));
  }

  /** The bucket of a label. A new bucket gets the group that had the label alone, if there was one. */
  #bucket(label: string, value: string): Bucket<Entry> {
    const values = this.#places.get(label) ?? new Map<string, IndexSlot<Entry>>();
    const place = values.get(value);
    if (place instanceof Bucket) return place;
    const bucket = new Bucket<Entry>();
    if (place !== undefined) {
      bucket.groups.push(place);
      bucket.sharers = 1;
    }
    this.#places.set(label, values.set(value, bucket));
    return bucket;
  }

  /** Removes buckets of a group's labels that are no longer needed: those with one group or none. */
  #settle(group: Entry): void {
    for (const [label, values] of handlesOf(group)) for (const value of values) this.#settlePlace(label, value);
    for (const name of namesOf(group)) if (this.#byName.get(name)?.groups.length === 0) this.#byName.delete(name);
  }

  #settlePlace(label: string, value: string): void {
    const values = this.#places.get(label);
    const place = values?.get(value);
    if (values === undefined || !(place instanceof Bucket) || place.sharers > 1) return;
    const [only] = place.groups;
    if (only !== undefined) values.set(value, only);
    else if (place.sharers === 0) values.delete(value);
    if (values.size === 0) this.#places.delete(label);
  }
}

/** The best group of a place that matches: those of a bucket are in the order in which they win. */
function firstMatch<Entry extends Group>(place: IndexSlot<Entry>, labels: Labels): Entry | undefined {
  // The label under which a group is filed matches already, and most groups have no other.
  const isMatch = (group: Entry) => group.requirementCount === 1 || matches(group, labels);
  if (place instanceof Bucket) return place.groups.find(isMatch);
  return isMatch(place) ? place : undefined;
}

function isRivalFor<Entry extends Group>(group: Entry, first: Entry, labels: Labels): boolean {
  return isRival(first, group) && matches(group, labels);
}

function hasRivalIn<Entry extends Group>(bucket: Bucket<Entry>, first: Entry, labels: Labels): boolean {
  if (bucket.calm?.has(first) === true) return false;
  let isCalm = true;
  for (const group of bucket.groups) {
    if (!isRival(first, group)) continue;
    if (matches(group, labels)) return true;
    isCalm = false;
  }
  if (isCalm && bucket.groups.length > fewGroups) bucket.calm = (bucket.calm ?? new WeakSet<Entry>()).add(first);
  return false;
}

function holds<Entry extends Group>(place: IndexSlot<Entry>, group: Entry): boolean {
  return place instanceof Bucket ? place.groups[positionIn(place.groups, group)] === group : place === group;
}

/** Where a group is in a sorted list, or belongs. */
function positionIn(groups: readonly Group[], group: Group): number {
  let from = 0;
  let to = groups.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    const other = groups[middle];
    if (other !== undefined && compareGroups(other, group) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** The values that a group's machines must have. */
function handlesOf({ selector, expressions }: Group): readonly Handle[] {
  const handles: Handle[] = [];
  for (const [label, value] of Object.entries(selector)) handles.push([label, [value]]);
  for (const { key, operator, values } of expressions) if (operator === "In") handles.push([key, values]);
  return handles;
}

/** The labels that a group's machines have, whatever their values, each once; the same for a group always. */
function namesOf({ expressions }: Group): readonly string[] {
  return [...new Set(expressions.flatMap((expression) => (isPositive(expression) ? [expression.key] : [])))];
}

const filingOrder: readonly string[] = ["uuid", "mac"];

/** Puts `uuid` first, then `mac`, then the rest as they are. */
function compareFiling([a]: Handle, [b]: Handle): number {
  return filingRank(a) - filingRank(b);
}

function filingRank(label: string): number {
  const rank = filingOrder.indexOf(label);
  return rank < 0 ? filingOrder.length : rank;
}
