/**
 * Counts the known machines that the changed objects select, in one pass over the machines. A machine counts by its
 * recorded labels, and by the Group of its last request: a selector may ask for labels that davit does not record.
 */

import { Slices } from "../../lib/slices.ts";
import type { Labels } from "../../model/labels/labels.ts";
import { type Group, matches } from "../../model/objects/group.ts";
import { identitiesOf } from "../../model/objects/machine.ts";
import { SelectorIndex } from "../../model/selection/selector-index.ts";
import type { Sides } from "./object-facts.ts";

/** A machine that davit knows from its history, its ledger or a Machine. */
export interface KnownMachine {
  readonly labels: Labels;
  /** The Group of its last request, `namespace/name`. */
  readonly group: string | undefined;
}

/** The Groups that decide about the machines of a changed object, before and after. */
export type Decisive = Sides<readonly Group[]>;

/** How many known machines an object reaches. */
export interface Reach {
  before: number;
  after: number;
}

/** How much is compared in one slice, which takes about a millisecond: values of selectors, and machines. */
const sliceSize = 4_096;
/** What a machine costs beside the comparisons. */
const machineCost = 16;

/** An entry of the index: a Group of a changed object, and for which sides it counts. */
interface CountedGroup extends Group {
  readonly at: number;
  readonly sides: readonly (keyof Reach)[];
  /** What it costs to compare a machine's labels with its selector. */
  readonly cost: number;
}

/**
 * Counts the machines of each object. It yields between slices.
 * @returns the counts, in the order of `objects`. Objects with the very same Groups share one.
 */
export function* reachOf(
  objects: readonly Decisive[],
  machines: Iterable<KnownMachine>,
): Generator<undefined, readonly Reach[]> {
  // A Profile can have very many Groups, and change many times within one count.
  const shared = Map.groupBy(objects, sharedBy);
  const count = new ReachCount([...shared.values()].flatMap(([first]) => first ?? []));
  yield* count.all(machines);
  const reachBy = new Map([...shared.keys()].map((key, at) => [key, count.reaches[at]]));
  return objects.map((each) => reachBy.get(sharedBy(each)) ?? { before: 0, after: 0 });
}

const sides = ["before", "after"] as const;

/** The objects that a machine counts for, by their places. */
type HitObjects = Readonly<Record<keyof Reach, Set<number>>>;

/** One pass over all machines. Its generators yield between slices. */
class ReachCount {
  readonly reaches: readonly Reach[];
  readonly #objects: readonly Decisive[];
  readonly #index = new SelectorIndex<CountedGroup>();
  readonly #byGroup = new Map<string, CountedGroup[]>();
  readonly #slices = new Slices(sliceSize);

  constructor(objects: readonly Decisive[]) {
    this.#objects = objects;
    this.reaches = objects.map(() => ({ before: 0, after: 0 }));
  }

  *all(machines: Iterable<KnownMachine>): Generator<undefined, void> {
    for (const [at, decisive] of this.#objects.entries()) yield* this.#file(entriesOf(decisive, at));
    for (const machine of machines) {
      const hits: HitObjects = { before: new Set(), after: new Set() };
      yield* this.#selecting(machine, hits);
      yield* this.#keeping(machine, hits);
      for (const side of sides) for (const at of hits[side]) add(this.reaches[at], side);
      if (this.#slices.isOver(machineCost)) yield;
    }
  }

  *#file(entries: Iterable<CountedGroup>): Generator<undefined, void> {
    for (const entry of entries) {
      this.#index.add(entry);
      const known = this.#byGroup.get(entry.id);
      if (known === undefined) this.#byGroup.set(entry.id, [entry]);
      else known.push(entry);
      if (this.#slices.isOver(machineCost + namedValues(entry))) yield;
    }
  }

  /** Finds what selects a machine by its recorded labels. */
  *#selecting({ labels }: KnownMachine, hits: HitObjects): Generator<undefined, void> {
    for (const list of this.#index.listsFor(labels)) {
      for (const entry of list) {
        if (isNew(entry, hits) && matches(entry, labels)) hit(entry, hits);
        if (this.#slices.isOver(entry.cost)) yield;
      }
    }
  }

  /** Finds what counts a machine by the Group of its last request. */
  *#keeping({ group }: KnownMachine, hits: HitObjects): Generator<undefined, void> {
    for (const entry of (group === undefined ? undefined : this.#byGroup.get(group)) ?? []) {
      if (isNew(entry, hits) && isAsBefore(entry, this.#objects[entry.at])) hit(entry, hits);
      if (this.#slices.isOver(1)) yield;
    }
  }
}

/** Returns what objects with the same Groups have in common. */
function sharedBy(decisive: Decisive): object {
  const { before, after } = decisive;
  return before !== undefined && before === after ? before : decisive;
}

function isNew({ at, sides: own }: CountedGroup, hits: HitObjects): boolean {
  return own.some((side) => !hits[side].has(at));
}

function hit({ at, sides: own }: CountedGroup, hits: HitObjects): void {
  for (const side of own) hits[side].add(at);
}

function add(reach: Reach | undefined, side: keyof Reach): void {
  if (reach !== undefined) reach[side]++;
}

function* entriesOf({ before = [], after = [] }: Decisive, at: number): Generator<CountedGroup> {
  if (before === after) {
    for (const group of after) yield { ...group, at, sides, cost: costOf(group) };
    return;
  }
  for (const group of before) yield { ...group, at, sides: ["before"], cost: costOf(group) };
  for (const group of after) yield { ...group, at, sides: ["after"], cost: costOf(group) };
}

/** A prefix and a pattern are compared one by one, the values of a set together. */
function costOf({ expressions }: Group): number {
  return expressions.reduce(
    (sum, { operator, values }) => sum + (operator === "Prefix" || operator === "Glob" ? values.length : 1),
    1,
  );
}

/** The index files a Group under each of these. */
function namedValues({ expressions }: Group): number {
  return expressions.reduce((sum, { operator, values }) => sum + (operator === "In" ? values.length : 0), 0);
}

/** True if a machine that last got this Group counts for it, whatever its recorded labels are. */
function isAsBefore({ id, sides, selectorText }: CountedGroup, decisive: Decisive | undefined): boolean {
  if (sides.includes("before")) return true;
  return decisive?.before?.some((group) => group.id === id && group.selectorText === selectorText) === true;
}

/** Yields machines, each once: a later one with a known identity is left out. */
export function* distinct(machines: Iterable<KnownMachine>): Generator<KnownMachine> {
  const seen = new Set<string>();
  for (const machine of machines) {
    const identities = identitiesOf(machine.labels);
    if (identities.some((identity) => seen.has(identity))) continue;
    for (const identity of identities) seen.add(identity);
    yield machine;
  }
}
