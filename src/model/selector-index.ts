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

/**
 * Groups filed under one label. Nearly always there is one, which is why it has a place of its own: with 100,000 groups
 * each further object on the way to it is a wait for memory.
 */
interface Bucket<Entry> {
  /** The group that wins here. */
  first: Entry | undefined;
  /** The others, the next one to win first. */
  others: Entry[];
  /** How many groups have this label in their selector, wherever they are filed. */
  sharers: number;
}

export class SelectorIndex<Entry extends Group> {
  /** Label, then value, to bucket. */
  readonly #buckets = new Map<string, Map<string, Bucket<Entry>>>();
  readonly #matchAll: Bucket<Entry> = { first: undefined, others: [], sharers: 0 };
  /** Where each group is filed. */
  readonly #filed = new Map<Entry, Bucket<Entry>>();

  /** Files all groups at once, which sorts each bucket only once. */
  constructor(groups: Iterable<Entry> = []) {
    const all = [...groups];
    for (const group of all) this.#count(group, 1);
    for (const group of all.toSorted(compareGroups)) append(this.#file(group), group);
  }

  add(group: Entry): void {
    this.#count(group, 1);
    insert(this.#file(group), group);
  }

  /** Removes a group that was added: the same object. */
  remove(group: Entry): void {
    const bucket = this.#filed.get(group);
    if (bucket === undefined) return;
    this.#filed.delete(group);
    if (bucket.first === group) bucket.first = bucket.others.shift();
    else bucket.others.splice(positionIn(bucket.others, group), 1);
    this.#count(group, -1);
  }

  /** The group that wins for these labels, or undefined when none matches. */
  find(labels: Labels): Entry | undefined {
    let best = this.#matchAll.first;
    for (const [label, value] of labels) {
      const bucket = this.#buckets.get(label)?.get(value);
      const found = bucket && firstMatch(bucket, labels);
      if (found !== undefined && (best === undefined || compareGroups(found, best) < 0)) best = found;
    }
    return best;
  }

  /** The most groups that one lookup may have to look at. */
  get largestBucket(): number {
    const buckets = [...this.#buckets.values()].flatMap((values) => [...values.values()]);
    return buckets.reduce((most, { first, others }) => Math.max(most, first ? 1 + others.length : 0), 0);
  }

  /** Chooses a group's bucket; its labels are counted already. */
  #file(group: Entry): Bucket<Entry> {
    let rarest: Bucket<Entry> | undefined;
    for (const [label, value] of [...group.selector].toSorted(compareFiling)) {
      const bucket = this.#bucket(label, value);
      if (rarest === undefined || bucket.sharers < rarest.sharers) rarest = bucket;
    }
    const bucket = rarest ?? this.#matchAll;
    this.#filed.set(group, bucket);
    return bucket;
  }

  #count(group: Group, change: 1 | -1): void {
    for (const [label, value] of group.selector) {
      const bucket = this.#bucket(label, value);
      bucket.sharers += change;
      if (bucket.sharers === 0) this.#drop(label, value);
    }
  }

  #bucket(label: string, value: string): Bucket<Entry> {
    const values = this.#buckets.get(label) ?? new Map<string, Bucket<Entry>>();
    const bucket = values.get(value) ?? { first: undefined, others: [], sharers: 0 };
    this.#buckets.set(label, values.set(value, bucket));
    return bucket;
  }

  #drop(label: string, value: string): void {
    const values = this.#buckets.get(label);
    values?.delete(value);
    if (values?.size === 0) this.#buckets.delete(label);
  }
}

/** The best group of a bucket that matches: its groups are in the order in which they win. */
function firstMatch<Entry extends Group>({ first, others }: Bucket<Entry>, labels: Labels): Entry | undefined {
  // The label under which a group is filed matches already, and most groups have no other.
  const isMatch = (group: Entry) => group.labelCount === 1 || matches(group, labels);
  if (first === undefined || isMatch(first)) return first;
  return others.find(isMatch);
}

/** Adds a group that comes after all that are there. */
function append<Entry>(bucket: Bucket<Entry>, group: Entry): void {
  if (bucket.first === undefined) bucket.first = group;
  else bucket.others.push(group);
}

/** Adds a group at its place. */
function insert<Entry extends Group>(bucket: Bucket<Entry>, group: Entry): void {
  const { first, others } = bucket;
  if (first === undefined || compareGroups(group, first) < 0) {
    bucket.first = group;
    if (first !== undefined) others.unshift(first);
  } else {
    others.splice(positionIn(others, group), 0, group);
  }
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
