/**
 * Ranks all Groups for one machine: those that match, and those that nearly match. It checks every Group, in slices;
 * 100,000 Groups take some tens of milliseconds. Previews and logs use it. The selection for a boot does not: it finds
 * the Group in an index.
 */

import { Slices } from "../../lib/slices.ts";
import { identityLabels, type Labels } from "../../model/labels/labels.ts";
import { compareGroups, type Group, matches } from "../../model/objects/group.ts";
import { type Want, wantsOf } from "../../model/selection/wants.ts";

export interface Contenders<Entry extends Group> {
  /** The first Groups that match, in the order of `compareGroups`. */
  readonly matching: readonly Entry[];
  /** How many Groups match. */
  readonly matchingCount: number;
  /** The first Groups that do not match, the nearest one first. */
  readonly nearest: readonly Entry[];
  /** How many Groups do not match. */
  readonly otherCount: number;
  /** Every label by which a Group selects. */
  readonly selectorLabels: ReadonlySet<string>;
}

interface ContestOptions<Entry extends Group> {
  readonly groups: Iterable<Entry>;
  readonly labels: Labels;
  /** The most Groups to list in `matching`, and in `nearest`. */
  readonly limit: number;
}

/** The work of one millisecond. */
const groupsPerSlice = 1_000;

/** Checks every Group. It yields at the end of each slice. */
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

/** Returns the wants of a Group that the machine does not meet. */
export function unmetWants(group: Group, labels: Labels): readonly Want[] {
  return wantsOf(group).filter(({ isMet }) => !isMet(labels));
}

/** Keeps the offered entries that sort first, up to a limit. */
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

/** How nearly a Group matches. In each member, a smaller number is nearer. */
interface Nearness {
  /** See `kindOf`. */
  readonly kind: number;
  readonly unmet: number;
  /** The number of met wants, negated: a Group with more of them is nearer. */
  readonly met: number;
}

interface Near<Entry> extends Nearness {
  readonly group: Entry;
}

function compareNearness<Entry extends Group>(a: Near<Entry>, b: Near<Entry>): number {
  return a.kind - b.kind || a.unmet - b.unmet || a.met - b.met || compareGroups(a.group, b.group);
}

function nearness(wants: readonly Want[], labels: Labels): Nearness {
  const met = wants.filter(({ isMet }) => isMet(labels));
  return { kind: kindOf(wants, met, labels), unmet: wants.length - met.length, met: -met.length };
}

/**
 * Returns how a Group relates to the machine:
 *
 * - 0: It names this machine.
 * - 1: It wants something that the machine has.
 * - 2: It names a machine with a similar address: probably a typing error.
 * - 3: It wants nothing that the machine has.
 * - 4: It names another machine.
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

/** Labels that can show a typing error. Serial numbers and host names of other machines are usually similar. */
const hardwareAddresses: readonly string[] = ["mac", "uuid"];

/** Enough for two exchanged digits, or for one or two misread digits. */
const maxSlips = 2;

function hardlyDiffers(label: string, wanted: string | undefined, found: string | undefined): boolean {
  if (!hardwareAddresses.includes(label) || wanted === undefined || found?.length !== wanted.length) return false;
  let slips = 0;
  for (let at = 0; at < wanted.length && slips <= maxSlips; at++) if (wanted[at] !== found[at]) slips += 1;
  return slips <= maxSlips;
}
