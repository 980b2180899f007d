/**
 * Decides between Groups with the same selector (copies). It keeps each result until one of these Groups changes. So a
 * repeated question costs the same among ten thousand copies as among ten.
 */

import type { Group } from "../../model/objects/group.ts";
import { type Contest, outcomeText, settle } from "../../model/selection/contest.ts";
import { sampleLabels } from "../../model/selection/sample-machine.ts";

/** Up to this many copies are compared at each call. With more copies, the eldest is remembered. */
const fewCopies = 8;

export class Copies {
  /** By selector. */
  readonly #groups = new Map<string, Set<Group>>();
  /**
   * The Group with the oldest claim among those removed in this step, by namespace and selector. A Group that is
   * renamed in one step inherits its claim.
   */
  readonly #parted = new Map<string, Group>();
  /** The Group with the oldest claim, by namespace and selector. Only for selectors that many Groups share. */
  readonly #eldest = new Map<string, Group>();
  /** Results of contests, by selector and then by priority. A change to a Group of the selector removes them. */
  readonly #contests = new Map<string, Map<number, Contest<Group>>>();

  add(group: Group): void {
    const groups = this.#groups.get(group.selectorText) ?? new Set<Group>();
    this.#groups.set(group.selectorText, groups.add(group));
    this.#contests.delete(group.selectorText);
    const key = keyOf(group);
    const eldest = this.#eldest.get(key);
    if (eldest !== undefined) this.#eldest.set(key, older(group, eldest));
  }

  /** Removes a Group. @param group the same object that was added. */
  remove(group: Group): void {
    const groups = this.#groups.get(group.selectorText);
    groups?.delete(group);
    if (groups?.size === 0) this.#groups.delete(group.selectorText);
    this.#contests.delete(group.selectorText);
    const key = keyOf(group);
    this.#parted.set(key, older(group, this.#parted.get(key)));
    if (this.#eldest.get(key) === group) this.#eldest.delete(key);
  }

  /** Ends a step, and forgets which Groups it removed. */
  endStep(): void {
    this.#parted.clear();
  }

  /** The Group with the oldest claim among a namespace's Groups of this selector, present or just removed. */
  eldestOf(namespace: string, selectorText: string): Group | undefined {
    const key = `${namespace}/${selectorText}`;
    let eldest = this.#eldest.get(key);
    const copies = this.of(selectorText);
    if (eldest === undefined) for (const each of copies) if (keyOf(each) === key) eldest = older(each, eldest);
    if (eldest !== undefined && copies.size > fewCopies) this.#eldest.set(key, eldest);
    const parted = this.#parted.get(key);
    return parted === undefined ? eldest : older(parted, eldest);
  }

  /** All Groups of this selector. */
  of(selectorText: string): ReadonlySet<Group> {
    return this.#groups.get(selectorText) ?? new Set();
  }

  /**
   * The contest between all Groups with this Group's selector and priority. It has the same result for every machine.
   */
  contestOf(group: Group): Contest<Group> {
    const { selectorText, priority } = group;
    const copies = this.of(selectorText);
    if (copies.size < 2) return { winner: group, rivals: [] };
    const known = this.#contests.get(selectorText) ?? new Map<number, Contest<Group>>();
    this.#contests.set(selectorText, known);
    const contest = known.get(priority) ?? contestAmong(copies, priority);
    known.set(priority, contest);
    return contest;
  }
}

function contestAmong(copies: ReadonlySet<Group>, priority: number): Contest<Group> {
  // Of all Groups with one outcome, only the Group with the oldest claim takes part.
  const heads = new Map<string, Group>();
  for (const group of copies) {
    if (group.priority !== priority) continue;
    const outcome = outcomeText(group);
    const head = heads.get(outcome);
    if (head === undefined || isBefore(group, head)) heads.set(outcome, group);
  }
  const groups = [...heads.values()];
  const [first] = groups;
  return settle(groups, first === undefined ? new Map() : sampleLabels(first));
}

/** The key of a Group's namespace and selector. */
function keyOf({ id, selectorText }: Group): string {
  return id.slice(0, id.indexOf("/") + 1) + selectorText;
}

function older(group: Group, other: Group | undefined): Group {
  return other === undefined || group.claimedAt < other.claimedAt ? group : other;
}

function isBefore(group: Group, head: Group): boolean {
  return group.claimedAt - head.claimedAt < 0 || (group.claimedAt === head.claimedAt && group.id < head.id);
}
