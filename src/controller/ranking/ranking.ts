/**
 * Finds Groups that tie, and Groups that never win because other Groups win all of their machines. It holds every Group
 * as the boot service has it now or will have it after the step. An index finds the Groups that a change affects, so a
 * change costs the same among 10,000 Groups as among ten. It reads no store and no source.
 *
 * Sometimes no index helps, for example with thousands of patterns for one label. Then it compares a bounded number of
 * Groups, so `free` can mean that the search ended early. But a Group that is reported as losing does lose. When its
 * winner changes, this Group is looked at again. The boot service uses no standings: it decides for each machine by
 * itself.
 */

import { assert } from "../../lib/errors.ts";
import { isPositive } from "../../model/labels/expression.ts";
import type { Labels } from "../../model/labels/labels.ts";
import { compareGroups, type Group, labelText, matches } from "../../model/objects/group.ts";
import {
  type Advantage,
  advantageOf,
  isRival,
  isSameNamespace,
  isSameOutcome,
  mayHaveBarred,
  outranks,
  settle,
} from "../../model/selection/contest.ts";
import { implies } from "../../model/selection/implication.ts";
import { sampleLabels } from "../../model/selection/sample-machine.ts";
import { SelectorIndex } from "../../model/selection/selector-index.ts";
import type { Claim } from "./claims.ts";
import { Copies } from "./copies.ts";

/** Whether a Group gets the machines that it selects. */
export type Standing =
  | { readonly kind: "free" }
  /** Every machine that this Group selects gets another Group. */
  | { readonly kind: "shadowed"; readonly by: Group }
  /** At least some of the machines that both Groups select get no Group. */
  | { readonly kind: "tied"; readonly with: Group }
  /** Some machines that both Groups select get the other Group, which is in another namespace. */
  | { readonly kind: "outclaimed"; readonly by: Group; readonly because: Advantage };

/** Ids of Groups to look at again after a change. Changed Groups may be among them. */
interface Affected {
  /** Groups with the same selector as a changed Group. */
  readonly siblings: ReadonlySet<string>;
  /** Groups that lost to a changed Group, may lose to it now, or share machines with a rival. */
  readonly others: ReadonlySet<string>;
}

/**
 * Limits on comparisons between Groups. `most` is for the standing of one Group. `ofStep` is for all standings of a
 * step. The search for Groups that the step affects has its own limit of the same size. After the standings have used
 * up `ofStep`, each further standing still gets `least`. `ofStep` is enough for 256 names. After a larger step, the
 * resync finds the rest: its steps have at most 256 names.
 */
const comparisons = { least: 8, most: 128, ofStep: 256 * 128 } as const;

export class Ranking {
  readonly #groups = new Map<string, Group>();
  readonly #copies = new Copies();
  /** By index text: each label with a value that a selector names, and each label alone. */
  readonly #byLabel = new Map<string, Set<Group>>();
  readonly #index = new SelectorIndex<Group>();
  /** Groups that were added, removed or changed since the last `takeAffected`: one for each selector and priority. */
  readonly #touched = new Map<string, Group>();
  /** From the id of each shadowed Group to the id of the winner. */
  readonly #shadows = new ShadowMap();
  /** Ids of shadowed Groups whose winner was removed or changed. */
  readonly #freed = new Set<string>();
  /** Ids of Groups that share machines with a rival. Any Group that is added or removed may decide between the two. */
  readonly #rivalled = new Set<string>();
  /** How many comparisons are left for the standings of this step. */
  #left: number = comparisons.ofStep;

  /** Replaces a Group; undefined for a Group that is gone. */
  update(id: string, group: Group | undefined): void {
    const before = this.#groups.get(id);
    if (before === group || (before !== undefined && group !== undefined && isSame(before, group))) return;
    for (const loser of this.#shadows.to(id)) this.#freed.add(loser);
    if (before !== undefined) this.#remove(before);
    if (group !== undefined) this.#add(group);
  }

  /**
   * Ends a series of updates, and renews the limit on comparisons.
   * @returns the Groups whose standing these updates may have changed.
   */
  takeAffected(): Affected {
    const siblings = new Set<string>();
    const others = new Set([...this.#freed].filter((id) => this.#groups.has(id)));
    // Small searches first, so that they finish even if a large one uses up the limit.
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

  /** The standing of a Group. `update` must have added the Group before. */
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

  /** A namespace's oldest claim to a selector's machines, from a Group that exists or was removed in this step. */
  claimIn(namespace: string, selectorText: string): Claim | undefined {
    const eldest = this.#copies.eldestOf(namespace, selectorText);
    if (eldest === undefined) return undefined;
    const { claimedAt, claimedLater } = eldest;
    return { claimedAt, ...(claimedLater.length > 0 && { claimedLater }) };
  }

  /** True if all machines of a Group are answered 503, because it ties with a Group of the same selector. */
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

  /** The standing of a Group if a rival keeps it from some machine; otherwise undefined. */
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

  /**
   * The standing of a Group beside one rival; undefined if the rival keeps no machine from the Group.
   * @param most limits the common machines to look at, and the Groups for each of them.
   */
  #standingBeside(group: Group, other: Group, most: number): Standing | undefined {
    let outclaimed: Standing | undefined;
    for (const machine of commonMachines(group, other, most)) {
      this.#left--;
      this.#rivalled.add(group.id);
      const { winner, rivals } = settle(this.#contenders(group, other, { machine, most }), machine);
      const first = [winner, ...rivals].find((each) => each !== undefined && isRival(group, each));
      if (first === undefined) continue;
      if (rivals.length > 0) return { kind: "tied", with: first };
      outclaimed = { kind: "outclaimed", by: first, because: advantageOf(first, group, machine) };
    }
    return outclaimed;
  }

  /**
   * The Groups that match a machine. If there are too many, only the two given Groups and the first matching Group in
   * the order.
   */
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

  /**
   * Returns the first Group in the order that selects all machines of this Group and is no rival. Returns the Group
   * itself if no other is found within the limit.
   */
  #winnerOver(group: Group): Group {
    // A Group that selects all machines of `group` also selects this sample. If the sample does not match, no search is
    // possible.
    const machine = sampleLabels(group);
    if (!matches(group, machine)) return group;
    const most = this.#budget();
    // The most likely winner is a Group with the same selector, so these are compared first.
    const copies = firstOf([this.#copies.of(group.selectorText)], most);
    const copy = [...copies].reduce((best, other) => (isBetter(other, best, group) ? other : best), group);
    const { winner, compared } = firstAbove(group, copy, { lists: this.#index.listsFor(machine), most });
    this.#left -= compared;
    return winner;
  }

  #budget(): number {
    return Math.max(comparisons.least, Math.min(comparisons.most, this.#left));
  }

  /** Sets that contain all Groups whose machines this Group selects, and perhaps other Groups. */
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

/** Records which Group loses all of its machines to which other Group, by their ids. */
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

/** Sorts ties first, because they are worse, and then by names. So equal facts give equal texts. */
function compareStandings(a: Standing, b: Standing): number {
  return textOf(a) < textOf(b) ? -1 : 1;
}

function textOf(standing: Standing): string {
  if (standing.kind === "tied") return `1 ${standing.with.id}`;
  return standing.kind === "outclaimed" ? `2 ${standing.by.id}` : "3";
}

/**
 * Sample machines that both selectors match: one for each value in the first Group's `In` expression that both
 * selectors accept. Without such an expression, at most one machine.
 */
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

/** True if the Groups differ in nothing that affects a standing. */
function isSame(group: Group, other: Group): boolean {
  if (!isSameRank(group, other) || !isSameOutcome(group, other) || group.claimedAt !== other.claimedAt) return false;
  return JSON.stringify(group.claimedLater) === JSON.stringify(other.claimedLater);
}

/**
 * Finds the first Group in the order that selects all machines of `group`; `known` if no earlier Group does. Each list
 * is sorted in this order.
 */
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

/**
 * False for a rival, and for a tenant's Group of another namespace: a tenant's order counts only in its own namespace.
 */
function mayShadow(other: Group, group: Group): boolean {
  return !isRival(group, other) && (!other.isTenant || isSameNamespace(other, group));
}

/** The first `most` Groups of these lists, list by list. */
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

/**
 * False if `other` certainly does not lose to `group`, which selects all machines of `other`. A selector with more
 * labels wins, unless the wider one has a priority or one of the two has expressions.
 */
function mayLose(other: Group, group: Group): boolean {
  return group.priority > 0 || group.expressions.length > 0 || other.expressions.length > 0;
}

/**
 * One list of index texts for each positive requirement of a Group. A Group that selects only machines of this Group is
 * in the index under at least one text of each list.
 */
function placesOf({ selector, expressions }: Group): readonly (readonly string[])[] {
  const labels = Object.entries(selector).map(([label, value]) => [labelText(label, value)]);
  const others = expressions
    .filter(isPositive)
    .map(({ key, operator, values }) => (operator === "In" ? values.map((value) => labelText(key, value)) : [key]));
  return [...labels, ...others];
}

/** All texts under which a Group is in the index. */
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
