/**
 * Finds Groups that never win, because others win all of their machines, and Groups that tie. It holds every Group as
 * the boot service has it or is about to have it, and uses an index. So a change costs as much among 10,000 Groups as
 * among ten. It reads no store and no source.
 *
 * Where no index helps, as among thousands of patterns for one label, it compares a bounded number of Groups. So "free"
 * may mean that the search ended early. A Group reported as losing always loses, and it is looked at again as soon as
 * its winner changes. The boot service decides for each machine anew.
 */

import { assert } from "../../lib/errors.ts";
import { isRival, isSameNamespace, isSameOutcome, mayHaveBarred, outranks, settle } from "../../model/contest.ts";
import { isPositive } from "../../model/expression.ts";
import { compareGroups, type Group, labelText, matches } from "../../model/group.ts";
import { implies } from "../../model/implication.ts";
import type { Labels } from "../../model/labels.ts";
import { SelectorIndex } from "../../model/selector-index.ts";
import type { Claim } from "./claims.ts";
import { Copies } from "./copies.ts";
import { sampleLabels } from "./sample-labels.ts";

/** How a Group stands among the others. */
export type Standing =
  | { readonly kind: "free" }
  /** Every machine that it selects gets another Group. */
  | { readonly kind: "shadowed"; readonly by: Group }
  /** No Group gets the machines that both select, or at least some of those machines. */
  | { readonly kind: "tied"; readonly with: Group }
  /** Machines that it selects get the other Group, whose namespace claimed them first. */
  | { readonly kind: "outclaimed"; readonly by: Group };

/** Groups to look at again after some have changed; changed Groups may be among them. */
export interface Affected {
  /** They have the same selector as a changed Group. */
  readonly siblings: ReadonlySet<string>;
  /** A changed Group selects all of their machines, or some of them with an equal right. */
  readonly others: ReadonlySet<string>;
}

/**
 * How many Groups are compared. `least` and `most` are for the standing of one Group. `ofStep` is for all standings of
 * a step, and again for all Groups that its changes may affect: enough for 256 names. The resync has the same budget,
 * and looks at what a larger step leaves open.
 */
const comparisons = { least: 8, most: 128, ofStep: 256 * 128 } as const;

export class Ranking {
  readonly #groups = new Map<string, Group>();
  readonly #copies = new Copies();
  /** Keys are a label with a value that a selector names, and the label alone. */
  readonly #byLabel = new Map<string, Set<Group>>();
  readonly #index = new SelectorIndex<Group>();
  /** Groups that were added, removed or changed, one for each selector and priority. */
  readonly #touched = new Map<string, Group>();
  /** Groups that lose a machine, and the winner of each: ids. */
  readonly #shadows = new ShadowMap();
  /** Groups that lost to a removed or changed Group. */
  readonly #freed = new Set<string>();
  /** Groups that share machines with a rival: a Group that is added or removed may decide between them. */
  readonly #rivalled = new Set<string>();
  /** How many comparisons are left for the standings of this step. */
  #left: number = comparisons.ofStep;

  /** Takes in a Group's current state; undefined for a Group that is gone. */
  update(id: string, group: Group | undefined): void {
    const before = this.#groups.get(id);
    if (before === group || (before !== undefined && group !== undefined && isSame(before, group))) return;
    for (const loser of this.#shadows.to(id)) this.#freed.add(loser);
    if (before !== undefined) this.#remove(before);
    if (group !== undefined) this.#add(group);
  }

  /** Begins a step. @returns the Groups whose standing may have changed by the updates since the last step. */
  takeAffected(): Affected {
    const siblings = new Set<string>();
    const others = new Set([...this.#freed].filter((id) => this.#groups.has(id)));
    // Searches with few comparisons first, so that they finish whatever the others cost.
    const searches = [...this.#touched.values()]
      .map((group) => ({ group, candidates: this.#candidatesFor(group) }))
      .toSorted((a, b) => sizeOf(a.candidates) - sizeOf(b.candidates));
    let left: number = comparisons.ofStep;
    for (const { group, candidates } of searches) {
      for (const { id } of this.#copies.of(group.selectorText)) siblings.add(id);
      for (const other of firstOf(candidates, left)) {
        left--;
        if (this.#isAffected(other, group)) others.add(other.id);
      }
    }
    this.#touched.clear();
    this.#freed.clear();
    this.#copies.endStep();
    this.#left = comparisons.ofStep;
    return { siblings, others };
  }

  /** How a known Group stands among the others. */
  standingOf({ id }: Group): Standing {
    const group = this.#groups.get(id);
    assert(group !== undefined, "A Group has a standing after it was taken in");
    const winner = this.#winnerOver(group);
    const rivalry = isSameRank(winner, group) ? this.#standingAmongRivals(group) : undefined;
    const standing = rivalry ?? (winner === group ? free : { kind: "shadowed" as const, by: winner });
    this.#shadows.set(group.id, standing.kind === "shadowed" ? standing.by.id : undefined);
    return standing;
  }

  /** True when another Group selects all machines of a removed Group and outranks it. */
  isTaken(gone: Group): boolean {
    const [winner, machine] = [this.#winnerOver(gone), sampleLabels(gone)];
    return outranks(winner, gone, machine) && !mayHaveBarred(gone, winner, machine);
  }

  /** The claim that a namespace has to a selector's machines, by a Group that exists or was removed in this step. */
  claimIn(namespace: string, selectorText: string): Claim | undefined {
    const eldest = this.#copies.eldestOf(namespace, selectorText);
    if (eldest === undefined) return undefined;
    const { claimedAt, claimedLater } = eldest;
    return { claimedAt, ...(claimedLater.length > 0 && { claimedLater }) };
  }

  /** True for a Group whose machines are all answered 503, because another Group of its selector has an equal right. */
  isTied({ id }: Group): boolean {
    const group = this.#groups.get(id);
    if (group === undefined) return false;
    const { winner, rivals } = this.#copies.contestOf(group);
    return rivals.length > 0 && winner !== undefined && [winner, ...rivals].some((other) => isRival(group, other));
  }

  #isAffected(other: Group, group: Group): boolean {
    if (mayLose(other, group) && implies(other, group)) return true;
    return this.#rivalled.has(other.id) || isRival(other, group);
  }

  /** The tie, or the claim of another Group, that keeps a Group from a machine; undefined if there is none. */
  #standingAmongRivals(group: Group): Standing | undefined {
    const most = this.#budget();
    const { winner = group, rivals } = this.#copies.contestOf(group);
    const copy = [winner, ...rivals].find((other) => isRival(group, other));
    const shared = this.#candidatesFor(group).filter(({ size }) => size > 1);
    const found: Standing[] = [];
    this.#rivalled.delete(group.id);
    for (const other of [...(copy === undefined ? [] : [copy]), ...firstOf(shared, most)]) {
      this.#left--;
      const standing = isRival(group, other) ? this.#standingBeside(group, other, most) : undefined;
      if (standing !== undefined) found.push(standing);
    }
    return found.toSorted(compareStandings)[0];
  }

  /** @param most the limit of common machines to look at, and of Groups for each machine. */
  #standingBeside(group: Group, other: Group, most: number): Standing | undefined {
    let outclaimed: Standing | undefined;
    for (const machine of commonMachines(group, other, most)) {
      this.#left--;
      this.#rivalled.add(group.id);
      const { winner, rivals } = settle(this.#contenders(group, other, { machine, most }), machine);
      const first = [winner, ...rivals].find((each) => each !== undefined && isRival(group, each));
      if (first === undefined) continue;
      if (rivals.length > 0) return { kind: "tied", with: first };
      outclaimed = { kind: "outclaimed", by: first };
    }
    return outclaimed;
  }

  /** The Groups that match a machine; if there are too many, only these two and the first in the order. */
  #contenders(
    group: Group,
    other: Group,
    { machine, most }: { readonly machine: Labels; readonly most: number },
  ): ReadonlySet<Group> {
    const lists = this.#index.listsFor(machine);
    const isFew = lists.reduce((sum, { length }) => sum + length, 0) <= most;
    const others = isFew ? lists.flat().filter((each) => matches(each, machine)) : [this.#index.find(machine) ?? group];
    return new Set([group, other, ...others]);
  }

  /** The first non-rival Group in order that selects all of this Group's machines, if few comparisons find it. */
  #winnerOver(group: Group): Group {
    // A Group that selects all of its machines also selects this sample. Without a sample, nothing is known.
    const machine = sampleLabels(group);
    if (!matches(group, machine)) return group;
    const most = this.#budget();
    // The most likely winner is a copy under another name, so those are compared first.
    const copies = firstOf([this.#copies.of(group.selectorText)], most);
    const copy = [...copies].reduce((best, other) => (isBetter(other, best, group) ? other : best), group);
    const { winner, compared } = firstAbove(group, copy, { lists: this.#index.listsFor(machine), most });
    this.#left -= compared;
    return winner;
  }

  #budget(): number {
    return Math.max(comparisons.least, Math.min(comparisons.most, this.#left));
  }

  /** Sets that together contain every Group whose machines this Group all selects. */
  #candidatesFor(group: Group): readonly ReadonlySet<Group>[] {
    const candidates = placesOf(group).map((texts) => texts.map((text) => this.#byLabel.get(text) ?? new Set<Group>()));
    const [fewest = []] = candidates.toSorted((a, b) => sizeOf(a) - sizeOf(b));
    return fewest;
  }

  #add(group: Group): void {
    this.#groups.set(group.id, group);
    this.#index.add(group);
    this.#copies.add(group);
    for (const text of textsOf(group)) addTo(this.#byLabel, text, group);
    this.#touch(group);
  }

  #remove(group: Group): void {
    this.#groups.delete(group.id);
    this.#shadows.set(group.id, undefined);
    this.#rivalled.delete(group.id);
    this.#index.remove(group);
    this.#copies.remove(group);
    for (const text of textsOf(group)) removeFrom(this.#byLabel, text, group);
    this.#touch(group);
  }

  #touch(group: Group): void {
    this.#touched.set(`${group.priority} ${group.selectorText}`, group);
  }
}

/** Which Group was reported as losing to which other Group, by their ids. */
class ShadowMap {
  readonly #winners = new Map<string, string>();
  readonly #losers = new Map<string, Set<string>>();

  /** Replaces a Group's winner; undefined for a Group that loses to no other, or is gone. */
  set(loser: string, winner: string | undefined): void {
    const before = this.#winners.get(loser);
    if (before === winner) return;
    if (before !== undefined) removeFrom(this.#losers, before, loser);
    this.#winners.delete(loser);
    if (winner === undefined) return;
    this.#winners.set(loser, winner);
    addTo(this.#losers, winner, loser);
  }

  /** The Groups that lose to this one. */
  to(winner: string): Iterable<string> {
    return this.#losers.get(winner) ?? [];
  }
}

const free: Standing = { kind: "free" };

/** Ties first, since they are worse, then by names: equal facts give equal texts. */
function compareStandings(a: Standing, b: Standing): number {
  return textOf(a) < textOf(b) ? -1 : 1;
}

function textOf(standing: Standing): string {
  if (standing.kind === "tied") return `1 ${standing.with.id}`;
  return standing.kind === "outclaimed" ? `2 ${standing.by.id}` : "3";
}

/** Machines that two selectors match: one for each value that their lists share, or at most one without lists. */
function* commonMachines(group: Group, other: Group, most: number): Iterable<Labels> {
  const selector = { ...group.selector, ...other.selector };
  const expressions = [...group.expressions, ...other.expressions];
  const list = group.expressions.find(({ operator }) => operator === "In");
  const rules = expressions.filter(({ key }) => key === list?.key);
  const values = list?.values.filter((value) => rules.every(({ accepts }) => accepts(value))).slice(0, most);
  const selections = values?.map((value) => ({ selector: { ...selector, [list?.key ?? ""]: value }, expressions }));
  for (const each of selections ?? [{ selector, expressions }]) {
    const machine = sampleLabels(each);
    if (matches(group, machine) && matches(other, machine)) yield machine;
  }
}

/** True when the two differ in nothing that affects a standing. */
function isSame(group: Group, other: Group): boolean {
  if (!isSameRank(group, other) || !isSameOutcome(group, other) || group.claimedAt !== other.claimedAt) return false;
  return JSON.stringify(group.claimedLater) === JSON.stringify(other.claimedLater);
}

/** The first Group in order, from `known` on, that selects all of a Group's machines; the lists have the same order. */
function firstAbove(
  group: Group,
  known: Group,
  { lists, most }: { readonly lists: readonly (readonly Group[])[]; readonly most: number },
): { readonly winner: Group; readonly compared: number } {
  let winner = known;
  let compared = 0;
  for (const list of lists.toSorted((a, b) => a.length - b.length)) {
    for (const other of firstOf([list], most - compared)) {
      if (compareGroups(other, winner) >= 0) break;
      compared++;
      if (mayShadow(other, group) && implies(group, other)) winner = other;
    }
  }
  return { winner, compared };
}

function isBetter(other: Group, best: Group, group: Group): boolean {
  return compareGroups(other, best) < 0 && mayShadow(other, group);
}

/** False for a Group with an equal right, and for a tenant's Group, whose order counts in its own namespace alone. */
function mayShadow(other: Group, group: Group): boolean {
  return !isRival(group, other) && (!other.isTenant || isSameNamespace(other, group));
}

/** The first Groups of these lists, list by list, up to this many. */
function* firstOf(lists: Iterable<Iterable<Group>>, most: number): Iterable<Group> {
  let left = most;
  for (const list of lists) {
    for (const group of list) {
      if (left-- <= 0) return;
      yield group;
    }
  }
}

function isSameRank(a: Group, b: Group): boolean {
  return a.priority === b.priority && a.selectorText === b.selectorText;
}

/** A Group with more labels beats a wider Group, unless the wider one has a priority or either has expressions. */
function mayLose(other: Group, group: Group): boolean {
  return group.priority > 0 || group.expressions.length > 0 || other.expressions.length > 0;
}

/** The index texts of Groups whose machines meet a requirement: one list for each positive requirement. */
function placesOf({ selector, expressions }: Group): readonly (readonly string[])[] {
  const labels = Object.entries(selector).map(([label, value]) => [labelText(label, value)]);
  const others = expressions
    .filter(isPositive)
    .map(({ key, operator, values }) => (operator === "In" ? values.map((value) => labelText(key, value)) : [key]));
  return [...labels, ...others];
}

/** The index texts of a Group. */
function textsOf(group: Group): ReadonlySet<string> {
  const { selector, expressions } = group;
  return new Set([...placesOf(group).flat(), ...Object.keys(selector), ...expressions.map(({ key }) => key)]);
}

function sizeOf(sets: readonly ReadonlySet<Group>[]): number {
  return sets.reduce((sum, { size }) => sum + size, 0);
}

function addTo<Value>(sets: Map<string, Set<Value>>, key: string, value: Value): void {
  const set = sets.get(key) ?? new Set<Value>();
  sets.set(key, set.add(value));
}

function removeFrom<Value>(sets: Map<string, Set<Value>>, key: string, value: Value): void {
  const set = sets.get(key);
  set?.delete(value);
  if (set?.size === 0) sets.delete(key);
}
