/**
 * Ranks all Groups for one machine: those that match, the winner first, and those that nearly match.
 * It looks at every Group, in slices; 100,000 Groups take some tens of milliseconds. Selection itself never does this.
 */

import { Slices } from "../lib/slices.ts";
import { compareGroups, type Group, matches } from "../model/group.ts";
import { identityLabels, type Labels } from "../model/labels.ts";
import { type Want, wantsOf } from "../model/wants.ts";

export interface Contenders<Entry extends Group> {
  /** Groups that match, in winning order; only the first ones. */
  readonly matching: readonly Entry[];
  readonly matchingCount: number;
  /** Groups that do not match, the nearest first; only the first ones. */
  readonly nearest: readonly Entry[];
  readonly otherCount: number;
  /** Every label that some Group selects by. */
  readonly selectorLabels: ReadonlySet<string>;
}

export interface ContestOptions<Entry extends Group> {
  readonly groups: Iterable<Entry>;
  readonly labels: Labels;
  /** The most Groups of each kind that are listed. */
  readonly limit: number;
}

/** A millisecond's work. */
const groupsPerSlice = 1_000;

/** Looks at every Group; each yield is the end of a slice. */
export function* findContenders<Entry extends Group>({
  groups,
  labels,
  limit,
}: ContestOptions<Entry>): Generator<undefined, Contenders<Entry>> {
  const matching = new Best<Entry>(limit, compareGroups);
  const nearest = new Best<Near<Entry>>(limit, compareNearness);
  const selectorLabels = new Set<string>();
  const slices = new Slices(groupsPerSlice);
  for (const group of groups) {
    const wants = wantsOf(group);
    for (const { label } of wants) selectorLabels.add(label);
    if (matches(group, labels)) matching.offer(group);
    else nearest.offer({ group, ...nearness(wants, labels) });
    if (slices.isOver(1)) yield;
  }
  return {
    matching: matching.entries,
    matchingCount: matching.offered,
    nearest: nearest.entries.map(({ group }) => group),
    otherCount: nearest.offered,
    selectorLabels,
  };
}

/** What a Group wants and the machine lacks. */
export function unmetWants(group: Group, labels: Labels): readonly Want[] {
  return wantsOf(group).filter(({ label, accepts }) => !accepts(labels.get(label)));
}

/** The first few of all offered entries, in their order. */
class Best<Entry> {
  readonly entries: Entry[] = [];
  offered = 0;
  readonly #limit: number;
  readonly #compare: (a: Entry, b: Entry) => number;

  constructor(limit: number, compare: (a: Entry, b: Entry) => number) {
    this.#limit = limit;
    this.#compare = compare;
  }

  offer(entry: Entry): void {
    this.offered += 1;
    const last = this.entries[this.#limit - 1];
    if (last !== undefined && this.#compare(entry, last) >= 0) return;
    const at = this.entries.findIndex((other) => this.#compare(entry, other) < 0);
    this.entries.splice(at < 0 ? this.entries.length : at, 0, entry);
    if (this.entries.length > this.#limit) this.entries.pop();
  }
}

/** How nearly a Group matches; smaller numbers are nearer. */
interface Nearness {
  /** See `kindOf`. */
  readonly kind: number;
  readonly unmet: number;
  /** The number of met wants, negated. */
  readonly met: number;
}

interface Near<Entry> extends Nearness {
  readonly group: Entry;
}

function compareNearness<Entry extends Group>(a: Near<Entry>, b: Near<Entry>): number {
  return a.kind - b.kind || a.unmet - b.unmet || a.met - b.met || compareGroups(a.group, b.group);
}

function nearness(wants: readonly Want[], labels: Labels): Nearness {
  const met = wants.filter(({ label, accepts }) => accepts(labels.get(label)));
  return { kind: kindOf(wants, met, labels), unmet: wants.length - met.length, met: -met.length };
}

/**
 * 0: the Group names this machine. 1: it wants something that the machine has. 2: it names a machine with a similar
 * address, probably a typing error. 3: it wants nothing that the machine has. 4: it names another machine.
 */
function kindOf(wants: readonly Want[], met: readonly Want[], labels: Labels): number {
  if (met.some(namesMachine)) return 0;
  const others = wants.filter((want) => namesMachine(want) && labels.has(want.label));
  if (others.length === 0) return met.length > 0 ? 1 : 3;
  return others.every(({ label, value }) => hardlyDiffers(label, value, labels.get(label))) ? 2 : 4;
}

function namesMachine({ label, namesValue }: Want): boolean {
  return namesValue && identityLabels.includes(label);
}

/** Serial numbers and host names of other machines are usually similar, so they prove no typing error. */
const hardwareAddresses: readonly string[] = ["mac", "uuid"];

/** Two exchanged digits, or one misread. */
const maxSlips = 2;

function hardlyDiffers(label: string, wanted: string | undefined, found: string | undefined): boolean {
  if (!hardwareAddresses.includes(label) || wanted === undefined || found?.length !== wanted.length) return false;
  let slips = 0;
  for (let at = 0; at < wanted.length && slips <= maxSlips; at++) if (wanted[at] !== found[at]) slips += 1;
  return slips <= maxSlips;
}
