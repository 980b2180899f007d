/**
 * Finds the winning group for a machine's labels, at a cost that does not grow with the number of groups.
 *
 * Each group is filed under one label of its selector and this label's value. The index chooses the label and value
 * that the fewest groups have; between equals, `uuid` and then `mac`. A group with an expression `In` can also be filed
 * under each value of its list. A group can only match a machine that has the label and value. So a search looks into
 * one bucket for each label of the machine, and into the bucket of groups that require no label. Each bucket is sorted,
 * the winning group first, so its first match is its best. Where a group is filed changes the speed of a search, but
 * never its result.
 *
 * A group that names no value of any label, such as with `serial Prefix`, is filed under the label's name. Such groups
 * cost more: a search for a machine with this label compares the groups one by one. It stops at a match, or when the
 * next group ranks behind the best match so far.
 */

import { isPositive } from "../labels/expression.ts";
import { identityLabels, type Labels, pairsOf, valuesOf } from "../labels/labels.ts";
import { ValueMap } from "../labels/value-map.ts";
import { compareGroups, type Group, matches } from "../objects/group.ts";
import { areNamesakesFor, type Contest, isRival, isSameNamespace, settle } from "./contest.ts";
import { namesValueOf } from "./specificity.ts";

/** The groups that are filed under one value of a label, or under one label's name. */
class Bucket<Entry extends object> {
  /** In winning order. */
  readonly groups: Entry[] = [];
  /** How many groups have this label and value in their selector, wherever they are filed. */
  sharers = 0;
  /**
   * Groups that have no rival in this bucket for any machine. Small buckets record none, because searching them is
   * fast.
   */
  calm: WeakSet<Entry> | undefined;
}

/** Comparing this many groups takes less time than parsing a request. */
const fewGroups = 16;

/**
 * The entry for one value of a label. If only one group has the value, as nearly always, the entry is the group itself.
 * With 100,000 groups, a search waits for memory at each further object that it reads.
 */
type IndexSlot<Entry extends object> = Entry | Bucket<Entry>;

/** A label, and the values under which a group can be filed: one value, or those of an expression. */
type Handle = readonly [label: string, values: readonly string[]];

export class SelectorIndex<Entry extends Group> {
  /** Label, then value. */
  readonly #places = new Map<string, ValueMap<IndexSlot<Entry>>>();
  /** By label: groups that ask for this label but name no value of any label. */
  readonly #byName = new Map<string, Bucket<Entry>>();
  /** Groups that require no label. */
  readonly #everywhere = new Bucket<Entry>();
  /** By identity label: how many groups use it. */
  readonly #speakers = new Map<string, number>();

  /** Files all groups together, so that it sorts them only once. */
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

  /** Removes a group. @param group the same object that was added. */
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
   * Returns the first group in order that matches these labels; undefined if no group does. The group gets the machine
   * unless it has rivals.
   */
  find(labels: Labels): Entry | undefined {
    let best = this.#everywhere.groups.find((group) => matches(group, labels));
    for (const [label, value] of pairsOf(labels)) {
      const place = this.#places.get(label)?.get(value);
      const found = place && firstMatch(place, labels);
      if (found !== undefined && (best === undefined || compareGroups(found, best) < 0)) best = found;
    }
    return this.#byName.size === 0 ? best : this.#bestByName(labels, best);
  }

  /**
   * Returns the namesakes of a group: groups of the same priority that name the same machine by other identity labels,
   * or by other values of them. A group that names no machine has none. The groups of other tenants are never
   * namesakes: claims decide between tenants, and a tenant must not make other tenants' machines wait.
   */
  namesakesOf(group: Group, labels: Labels): readonly Entry[] {
    const own = identityLabels.filter((label) => namesValueOf(group, label));
    const isOther = (label: string) => labels.further?.has(label) === true || !own.includes(label);
    const others = identityLabels.filter((label) => isOther(label) && this.#isNamed(label, labels));
    if (own.length === 0 || others.length === 0) return [];
    const isNamesake = (other: Entry) =>
      (!other.isTenant || isSameNamespace(group, other)) &&
      areNamesakesFor(group, other, labels) &&
      matches(other, labels);
    // A group that names a machine is filed under a value of one of its labels.
    return [...pairsOf(labels)].flatMap(([label, value]) => {
      const place = this.#places.get(label)?.get(value);
      if (place === undefined) return [];
      return (place instanceof Bucket ? place.groups : [place]).filter(isNamesake);
    });
  }

  #isNamed(label: string, labels: Labels): boolean {
    return valuesOf(labels, label).some((value) => this.#places.get(label)?.get(value) !== undefined);
  }

  /** True when the group that `find` returned for these labels has a rival for the machine. */
  hasRival(first: Entry, labels: Labels): boolean {
    if (first.isTenant) return this.#hasRivalAnywhere(first, labels);
    // Nearly every group has a value that no other group has. Such a group has no rival, because a rival would have the
    // value, too, unless the machine has several values of the label.
    if (labels.further === undefined)
      for (const [label, value] of labels) if (this.#places.get(label)?.get(value) === first) return false;
    return this.#placesFor(handlesOf(first), labels).some((place) => hasRivalAt(place, first, labels));
  }

  /** Like `hasRival`, for a tenant's group: a group of another namespace may beat it by other labels. */
  #hasRivalAnywhere(first: Entry, labels: Labels): boolean {
    for (const [label, value] of pairsOf(labels)) {
      const place = this.#places.get(label)?.get(value);
      if (place !== undefined && hasRivalAt(place, first, labels)) return true;
      const named = this.#byName.get(label);
      if (named !== undefined && hasRivalIn(named, first, labels)) return true;
    }
    return hasRivalIn(this.#everywhere, first, labels);
  }

  /** Decides between all groups that match these labels. */
  settle(labels: Labels): Contest<Entry> {
    const matching = this.listsFor(labels).flatMap((groups) => groups.filter((group) => matches(group, labels)));
    // A list of values can file a group under several values of the machine.
    return settle(labels.further === undefined ? matching : new Set(matching), labels);
  }

  /** True when a group uses this identity label. */
  speaksOf(label: string): boolean {
    return (this.#speakers.get(label) ?? 0) > 0;
  }

  /**
   * Returns lists that hold every group that matches these labels, and perhaps groups that do not match. Each list is
   * in winning order.
   */
  listsFor(labels: Labels): readonly (readonly Entry[])[] {
    const lists: (readonly Entry[])[] = [this.#everywhere.groups];
    for (const [label, value] of pairsOf(labels)) {
      const place = this.#places.get(label)?.get(value);
      if (place !== undefined) lists.push(place instanceof Bucket ? place.groups : [place]);
      lists.push(this.#byName.get(label)?.groups ?? []);
    }
    return lists;
  }

  /** The number of groups in the largest bucket of a label. */
  get largestBucket(): number {
    const places = [...this.#places.values()].flatMap((values) => [...values.values()]);
    return [...places, ...this.#byName.values()].reduce(
      (most, place) => Math.max(most, place instanceof Bucket ? place.groups.length : 1),
      0,
    );
  }

  /** Returns the places that may hold a rival of a group with these handles: a group with the same labels. */
  #placesFor(handles: readonly Handle[], labels: Labels): readonly IndexSlot<Entry>[] {
    if (handles.length === 0)
      return [this.#everywhere, ...namesIn(labels).flatMap((name) => this.#byName.get(name) ?? [])];
    return handles.flatMap(([label]) =>
      valuesOf(labels, label).flatMap((value) => this.#places.get(label)?.get(value) ?? []),
    );
  }

  /** Like `find`, for the groups that are filed by name. @param best the winner of all other groups. */
  #bestByName(labels: Labels, best: Entry | undefined): Entry | undefined {
    let winner = best;
    for (const label of labels.further === undefined ? labels.keys() : namesIn(labels)) {
      const groups = this.#byName.get(label)?.groups ?? [];
      const end = winner === undefined ? groups.length : positionIn(groups, winner);
      const at = groups.findIndex((group, index) => index >= end || matches(group, labels));
      if (at >= 0 && at < end) winner = groups[at];
    }
    return winner;
  }

  /** Returns the buckets that a group is filed in; none for a group that was not added. */
  #filedIn(group: Entry): readonly Bucket<Entry>[] {
    for (const [label, values] of handlesOf(group)) {
      const [value] = values;
      const place = value === undefined ? undefined : this.#places.get(label)?.get(value);
      if (place !== undefined && holds(place, group)) return this.#buckets(label, values);
    }
    const others = [...namesOf(group).flatMap((name) => this.#byName.get(name) ?? []), this.#everywhere];
    return others.filter((bucket) => holds(bucket, group));
  }

  /** Chooses the buckets to file a group in. `#count` must have counted the group before. */
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

  /** Returns the bucket of a value. A new bucket gets the group that was the only one with this value, if any. */
  #bucket(label: string, value: string): Bucket<Entry> {
    const values = this.#places.get(label) ?? new ValueMap<IndexSlot<Entry>>();
    const place = values.get(value);
    if (place instanceof Bucket) return place;
    const bucket = new Bucket<Entry>();
    if (place !== undefined) {
      bucket.groups.push(place);
      bucket.sharers = 1;
    }
    values.set(value, bucket);
    this.#places.set(label, values);
    return bucket;
  }

  /** Removes a group's buckets that are no longer needed, because at most one group has their value. */
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
    if (values.isEmpty) this.#places.delete(label);
  }
}

/** Returns the best matching group of a slot. The groups of a bucket are in winning order. */
function firstMatch<Entry extends Group>(place: IndexSlot<Entry>, labels: Labels): Entry | undefined {
  // The label under which a group is filed matches already, and most groups have no other requirement.
  const isMatch = (group: Entry) => group.requirementCount === 1 || matches(group, labels);
  if (place instanceof Bucket) return place.groups.find(isMatch);
  return isMatch(place) ? place : undefined;
}

function hasRivalAt<Entry extends Group>(place: IndexSlot<Entry>, first: Entry, labels: Labels): boolean {
  return place instanceof Bucket ? hasRivalIn(place, first, labels) : isRivalFor(place, first, labels);
}

function namesIn(labels: Labels): readonly string[] {
  return [...new Set([...labels.keys(), ...(labels.further?.keys() ?? [])])];
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

/** Returns the position of a group in a sorted list, or where to insert it. */
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

/** Returns the labels for which a group names values, with these values. */
function handlesOf({ selector, expressions }: Group): readonly Handle[] {
  const handles: Handle[] = [];
  for (const [label, value] of Object.entries(selector)) handles.push([label, [value]]);
  for (const { key, operator, values } of expressions) if (operator === "In") handles.push([key, values]);
  return handles;
}

/** Returns the labels that a group's positive expressions require, each once. */
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
