/**
 * Which Groups win over which, whatever machine asks: a Group that can never win, and Groups that nothing but their
 * names would tell apart. It holds every Group as the boot service has it or is about to have it, and finds these facts
 * by index, so that a change costs as much among 10,000 Groups as among ten. It reads no store and no source.
 *
 * Where no index helps, as among thousands of patterns for one label, it compares a bounded number of Groups and no more.
 * So "free" may mean that nothing was found in time; what it says of a Group that loses is always so, and whoever was told
 * to lose is named again as soon as the winner is another than it was.
 */

import { isPositive } from "../model/expression.ts";
import { compareGroups, type Group, labelText, matches } from "../model/group.ts";
import { implies } from "../model/implication.ts";
import { SelectorIndex } from "../model/selector-index.ts";
import { outranks } from "../model/specificity.ts";
import { Losses } from "./losses.ts";
import { sampleLabels } from "./sample-labels.ts";
import { Ties } from "./ties.ts";

/** What a Group is among the others. */
export type Standing =
  | { readonly kind: "free" }
  /** Every machine that it selects gets another Group. */
  | { readonly kind: "shadowed"; readonly by: Group }
  /** Groups of several namespaces have the same selector and priority: these, the first six of the others, sorted. */
  | { readonly kind: "tied"; readonly others: readonly string[] };

/** Groups to look at again after some have changed; those that have changed may be among them. */
export interface Affected {
  /** They have the same selector as one that changed. */
  readonly siblings: ReadonlySet<string>;
  /** One that changed selects all of their machines, and others. */
  readonly others: ReadonlySet<string>;
}

/**
 * How many Groups are compared: for the standing of one, at least and at most, and in a step for all standings, and again
 * for all whom its changes may hit. A step of 256 names has enough for each of them; what a larger one leaves open is
 * looked at with the resync, which takes as many.
 */
const comparisons = { least: 8, most: 128, ofStep: 256 * 128 } as const;

export class Ranking {
  readonly #groups = new Map<string, Group>();
  readonly #bySelector = new Map<string, Set<Group>>();
  /** By label and value, for each value that a selector names, and by the label alone. */
  readonly #byLabel = new Map<string, Set<Group>>();
  readonly #index = new SelectorIndex<Group>();
  /** Groups that came, went or changed, one for each selector: the one with the highest priority. */
  readonly #touched = new Map<string, Group>();
  /** Who was told to lose, and to whom: ids. */
  readonly #losses = new Losses();
  /** Who lost to Groups that went or changed. */
  readonly #freed = new Set<string>();
  /** Undefined where the name decides among Groups of all namespaces. */
  readonly #ties: Ties | undefined;
  /** How many Groups the standings of this step may still be compared with. */
  #left: number = comparisons.ofStep;

  /** @param options.tiesAcrossNamespaces false where the name decides among Groups of all namespaces. */
  constructor({ tiesAcrossNamespaces }: { readonly tiesAcrossNamespaces: boolean }) {
    this.#ties = tiesAcrossNamespaces ? new Ties() : undefined;
  }

  /** Takes in what a Group is now; undefined for one that is gone. */
  update(id: string, group: Group | undefined): void {
    const before = this.#groups.get(id);
    if (before?.selectorText === group?.selectorText && before?.priority === group?.priority) return;
    for (const loser of this.#losses.to(id)) this.#freed.add(loser);
    if (before !== undefined) this.#remove(before);
    if (group !== undefined) this.#add(group);
  }

  /** Begins a step. @returns whose standing may have changed by the updates since the last one. */
  takeAffected(): Affected {
    const siblings = new Set<string>();
    const others = new Set([...this.#freed].filter((id) => this.#groups.has(id)));
    // Those with few to compare first, so that they are told whatever the others cost.
    const searches = [...this.#touched.values()]
      .map((group) => ({ group, candidates: this.#candidatesFor(group) }))
      .toSorted((a, b) => sizeOf(a.candidates) - sizeOf(b.candidates));
    let left: number = comparisons.ofStep;
    for (const { group, candidates } of searches) {
      for (const { id } of this.#bySelector.get(group.selectorText) ?? []) siblings.add(id);
      for (const other of firstOf(candidates, left)) {
        left--;
        if (mayLose(other, group) && implies(other, group)) others.add(other.id);
      }
    }
    this.#touched.clear();
    this.#freed.clear();
    this.#left = comparisons.ofStep;
    return { siblings, others };
  }

  /** What a Group is among those that were taken in, which it is one of. */
  standingOf(group: Group): Standing {
    const winner = this.#winnerOver(group);
    const others = this.tiedWith(group);
    const standing = standingAmong(group, winner, others);
    this.#losses.set(group.id, standing.kind === "shadowed" ? standing.by.id : undefined);
    return standing;
  }

  /** True when another Group takes each machine of one that is none of these any more, and outranks it. */
  isTaken(gone: Group): boolean {
    return outranks(this.#winnerOver(gone), gone);
  }

  /** The first six of those with the same selector and priority, sorted; none unless they are of several namespaces. */
  tiedWith(group: Group): readonly string[] {
    return this.#ties?.othersOf(group) ?? [];
  }

  /** The first Group in order that selects all of this one's machines, as far as few comparisons tell; else itself. */
  #winnerOver(group: Group): Group {
    // Whoever selects all of its machines selects this one among them. Where none is at hand, nothing is known.
    const machine = sampleLabels(group);
    if (!matches(group, machine)) return group;
    const most = Math.max(comparisons.least, Math.min(comparisons.most, this.#left));
    // The likeliest one, a copy under another name, is found among however many others.
    const copies = firstOf([this.#bySelector.get(group.selectorText) ?? []], most);
    const copy = [...copies].reduce((best, other) => (compareGroups(other, best) < 0 ? other : best), group);
    const { winner, compared } = firstAbove(group, copy, { lists: this.#index.listsFor(machine), most });
    this.#left -= compared;
    return winner;
  }

  /** Groups among which are all whose machines this one selects. */
  #candidatesFor(group: Group): readonly ReadonlySet<Group>[] {
    const candidates = placesOf(group).map((texts) => texts.map((text) => this.#byLabel.get(text) ?? new Set<Group>()));
    const [fewest = []] = candidates.toSorted((a, b) => sizeOf(a) - sizeOf(b));
    return fewest;
  }

  #add(group: Group): void {
    this.#groups.set(group.id, group);
    this.#index.add(group);
    this.#ties?.add(group);
    addTo(this.#bySelector, group.selectorText, group);
    for (const text of textsOf(group)) addTo(this.#byLabel, text, group);
    this.#touch(group);
  }

  #remove(group: Group): void {
    this.#groups.delete(group.id);
    this.#losses.set(group.id, undefined);
    this.#index.remove(group);
    this.#ties?.remove(group);
    removeFrom(this.#bySelector, group.selectorText, group);
    for (const text of textsOf(group)) removeFrom(this.#byLabel, text, group);
    this.#touch(group);
  }

  #touch(group: Group): void {
    const known = this.#touched.get(group.selectorText);
    if (known === undefined || known.priority < group.priority) this.#touched.set(group.selectorText, group);
  }
}

const free: Standing = { kind: "free" };

function standingAmong(group: Group, winner: Group, tied: readonly string[]): Standing {
  if (tied.length > 0 && isSameRank(winner, group)) return { kind: "tied", others: tied };
  return winner.id === group.id ? free : { kind: "shadowed", by: winner };
}

/** The first Group in order, from `known` on, that selects all of a Group's machines; lists are in that order. */
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
      if (implies(group, other)) winner = other;
    }
  }
  return { winner, compared };
}

/** No more than this many of some Groups, list by list. */
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

/** A Group with more labels wins over one that selects its machines, unless that has a priority, or one has expressions. */
function mayLose(other: Group, group: Group): boolean {
  return group.priority > 0 || group.expressions.length > 0 || other.expressions.length > 0;
}

/** Under which texts the Groups are found whose machines meet a requirement: one list for each that is positive. */
function placesOf({ selector, expressions }: Group): readonly (readonly string[])[] {
  const labels = Object.entries(selector).map(([label, value]) => [labelText(label, value)]);
  const others = expressions
    .filter(isPositive)
    .map(({ key, operator, values }) => (operator === "In" ? values.map((value) => labelText(key, value)) : [key]));
  return [...labels, ...others];
}

/** Under which texts a Group is found. */
function textsOf(group: Group): ReadonlySet<string> {
  const { selector, expressions } = group;
  return new Set([...placesOf(group).flat(), ...Object.keys(selector), ...expressions.map(({ key }) => key)]);
}

function sizeOf(sets: readonly ReadonlySet<Group>[]): number {
  return sets.reduce((sum, { size }) => sum + size, 0);
}

function addTo(sets: Map<string, Set<Group>>, key: string, group: Group): void {
  const set = sets.get(key) ?? new Set<Group>();
  sets.set(key, set.add(group));
}

function removeFrom(sets: Map<string, Set<Group>>, key: string, group: Group): void {
  const set = sets.get(key);
  set?.delete(group);
  if (set?.size === 0) sets.delete(key);
}
