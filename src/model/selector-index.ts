/**
 * Finds the winning group for a machine's labels, at a cost that does not grow with the number of groups.
 *
 * Each group is filed under one label of its selector, the one that fewest groups share; between equals `uuid`, then
 * `mac`. A group can only match a machine that has that very label, so a search looks into one bucket for each label of
 * the machine, plus the groups that match all. Buckets are kept in the order in which groups win, so the first match of
 * a bucket is its best. Where a group is filed never changes an answer, only how fast it is found.
 */

import { compareGroups, type Group, matches } from "./group.ts";
import type { Labels } from "./labels.ts";

/** Groups filed under one label that several have. */
class Bucket<Entry> {
  /** The next one to win first. */
  readonly groups: Entry[] = [];
  /** How many groups have this label in their selector, wherever they are filed. */
  sharers = 0;
}

/**
 * What a label leads to. Nearly always one group has it, and then there is no bucket: with 100,000 groups each further
 * object on the way to it is a wait for memory.
 */
type Place<Entry> = Entry | Bucket<Entry>;

export class SelectorIndex<Entry extends Group> {
  /** Label, then value. */
  readonly #places = new Map<string, Map<string, Place<Entry>>>();
  readonly #matchAll = new Bucket<Entry>();

  /** Files all groups at once, which sorts each bucket only once. */
  constructor(groups: Iterable<Entry> = []) {
    const all = [...groups];
    for (const group of all) this.#count(group, 1);
    for (const group of all.toSorted(compareGroups)) this.#rarest(group).groups.push(group);
    for (const group of all) this.#settle(group);
  }

  add(group: Entry): void {
    this.#count(group, 1);
    const { groups } = this.#rarest(group);
    groups.splice(positionIn(groups, group), 0, group);
    this.#settle(group);
  }

  /** Removes a group that was added: the same object. */
  remove(group: Entry): void {
    const groups = this.#filedIn(group)?.groups;
    if (groups === undefined) return;
    groups.splice(positionIn(groups, group), 1);
    this.#count(group, -1);
    this.#settle(group);
  }

  /** The group that wins for these labels, or undefined when none matches. */
  find(labels: Labels): Entry | undefined {
    let best = this.#matchAll.groups[0];
    for (const [label, value] of labels) {
      const place = this.#places.get(label)?.get(value);
      const found = place && firstMatch(place, labels);
      if (found !== undefined && (best === undefined || compareGroups(found, best) < 0)) best = found;
    }
    return best;
  }

  /** The most groups that one lookup may have to look at. */
  get largestBucket(): number {
    const places = [...this.#places.values()].flatMap((values) => [...values.values()]);
    return places.reduce((most, place) => Math.max(most, place instanceof Bucket ? place.groups.length : 1), 0);
  }

  /** The bucket that a group is filed in; undefined for a group that was not added. */
  #filedIn(group: Entry): Bucket<Entry> | undefined {
    if (group.labelCount === 0) return holds(this.#matchAll, group) ? this.#matchAll : undefined;
    for (const [label, value] of group.selector) {
      const place = this.#places.get(label)?.get(value);
      if (place !== undefined && holds(place, group)) return this.#bucket(label, value);
    }
    return undefined;
  }

  /** The bucket to file a group in; its labels are counted already. */
  #rarest(group: Entry): Bucket<Entry> {
    let rarest: Bucket<Entry> | undefined;
    for (const [label, value] of [...group.selector].toSorted(compareFiling)) {
      const bucket = this.#bucket(label, value);
      if (rarest === undefined || bucket.sharers < rarest.sharers) rarest = bucket;
    }
    return rarest ?? this.#matchAll;
  }

  #count(group: Entry, change: 1 | -1): void {
    for (const [label, value] of group.selector) this.#bucket(label, value).sharers += change;
  }

  /** The bucket of a label, made of the one group that had the label alone, or of none. */
  #bucket(label: string, value: string): Bucket<Entry> {
    const values = this.#places.get(label) ?? new Map<string, Place<Entry>>();
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

  /** Does away with the buckets of a group's labels that need not be: of one group that is filed there, and of none. */
  #settle(group: Entry): void {
    for (const [label, value] of group.selector) {
      const values = this.#places.get(label);
      const place = values?.get(value);
      if (values === undefined || !(place instanceof Bucket) || place.sharers > 1) continue;
      const [only] = place.groups;
      if (only !== undefined) values.set(value, only);
      else if (place.sharers === 0) values.delete(value);
      if (values.size === 0) this.#places.delete(label);
    }
  }
}

/** The best group of a place that matches: those of a bucket are in the order in which they win. */
function firstMatch<Entry extends Group>(place: Place<Entry>, labels: Labels): Entry | undefined {
  // The label under which a group is filed matches already, and most groups have no other.
  const isMatch = (group: Entry) => group.labelCount === 1 || matches(group, labels);
  if (place instanceof Bucket) return place.groups.find(isMatch);
  return isMatch(place) ? place : undefined;
}

function holds<Entry extends Group>(place: Place<Entry>, group: Entry): boolean {
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

const filingOrder: readonly string[] = ["uuid", "mac"];

/** Puts `uuid` first, then `mac`, then the rest as they are. */
function compareFiling([a]: readonly [string, string], [b]: readonly [string, string]): number {
  return filingRank(a) - filingRank(b);
}

function filingRank(label: string): number {
  const rank = filingOrder.indexOf(label);
  return rank < 0 ? filingOrder.length : rank;
}
