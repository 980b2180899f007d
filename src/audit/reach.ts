/**
 * Counts the known machines that the changed objects select, in one pass over the machines. A machine counts by its
 * recorded labels, and by the Group of its last request: a selector may ask for labels that davit does not record.
 */

import { Slices } from "../lib/slices.ts";
import { type Group, matches } from "../model/group.ts";
import type { Labels } from "../model/labels.ts";
import { identitiesOf } from "../model/machine.ts";
import { SelectorIndex } from "../model/selector-index.ts";
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

/** How many machines or Groups are looked at in one slice, which takes about a millisecond. */
const sliceSize = 256;

/** An entry of the index: a Group of a changed object, and for which sides it counts. */
interface CountedGroup extends Group {
  readonly at: number;
  readonly sides: readonly (keyof Reach)[];
}

/**
 * Counts the machines of each object. It yields between slices.
 * @returns the counts, in the order of `objects`.
 */
export function* reachOf(
  objects: readonly Decisive[],
  machines: Iterable<KnownMachine>,
): Generator<undefined, readonly Reach[]> {
  const reaches = objects.map((): Reach => ({ before: 0, after: 0 }));
  const entries = objects.flatMap(entriesOf);
  const index = new SelectorIndex<CountedGroup>();
  const byGroup = Map.groupBy(entries, ({ id }) => id);
  const slices = new Slices(sliceSize);
  for (const entry of entries) {
    index.add(entry);
    if (slices.isOver(1)) yield;
  }
  for (const { labels, group } of machines) {
    const matching = index.listsFor(labels).flatMap((list) => list.filter((each) => matches(each, labels)));
    const last = group === undefined ? undefined : byGroup.get(group);
    const kept = last?.filter((entry) => isAsBefore(entry, objects[entry.at])) ?? [];
    for (const side of ["before", "after"] as const) count(reaches, [...matching, ...kept], side);
    if (slices.isOver(1)) yield;
  }
  return reaches;
}

/** Counts one machine for each object that one of these Groups belongs to. */
function count(reaches: readonly Reach[], entries: readonly CountedGroup[], side: keyof Reach): void {
  const hit = new Set(entries.flatMap(({ at, sides }) => (sides.includes(side) ? [at] : [])));
  for (const reach of [...hit].flatMap((at) => reaches[at] ?? [])) reach[side]++;
}

function entriesOf({ before = [], after = [] }: Decisive, at: number): readonly CountedGroup[] {
  if (before === after) return after.map((group) => ({ ...group, at, sides: ["before", "after"] }));
  const ofSide = (groups: readonly Group[], side: keyof Reach) =>
    groups.map((group) => ({ ...group, at, sides: [side] }));
  return [...ofSide(before, "before"), ...ofSide(after, "after")];
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
