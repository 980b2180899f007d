/**
 * Decides which Group of one selector gets its machines. Until a Group changes, an answer costs the same among ten
 * thousand Groups as among ten.
 */

import { type Contest, outcomeText, settle } from "../../model/contest.ts";
import type { Group } from "../../model/group.ts";
import { sampleLabels } from "./sample-labels.ts";

/** So many are looked at each time. */
const fewCopies = 8;

export class Copies {
  readonly #groups = new Map<string, Set<Group>>();
  /**
   * Groups removed in this step: a Group that is renamed in one step keeps its claim. By namespace and selector, like
   * `#eldest`.
   */
  readonly #parted = new Map<string, Group>();
  /** The oldest claim of each namespace, where many Groups share a selector. */
  readonly #eldest = new Map<string, Group>();
  /** By selector, then by priority, for selectors whose Groups have not changed since. */
  readonly #contests = new Map<string, Map<number, Contest<Group>>>();

  add(group: Group): void {
    const groups = this.#groups.get(group.selectorText) ?? new Set<Group>();
    this.#groups.set(group.selectorText, groups.add(group));
    this.#contests.delete(group.selectorText);
    const key = keyOf(group);
    const eldest = this.#eldest.get(key);
    if (eldest !== undefined) this.#eldest.set(key, older(group, eldest));
  }

  /** Removes a Group: the same object that was added. */
  remove(group: Group): void {
    const groups = this.#groups.get(group.selectorText);
    groups?.delete(group);
    if (groups?.size === 0) this.#groups.delete(group.selectorText);
    this.#contests.delete(group.selectorText);
    const key = keyOf(group);
    this.#parted.set(key, older(group, this.#parted.get(key)));
    if (this.#eldest.get(key) === group) this.#eldest.delete(key);
  }

  /** Forgets which Groups were removed. */
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

  /** The result of the contest between the Groups of this Group's selector and priority, for every machine. */
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
  // One Group stands for all Groups whose machines get the same answers.
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

/** The key of a selector in a namespace. */
function keyOf({ id, selectorText }: Group): string {
  return id.slice(0, id.indexOf("/") + 1) + selectorText;
}

function older(group: Group, other: Group | undefined): Group {
  return other === undefined || group.claimedAt < other.claimedAt ? group : other;
}

function isBefore(group: Group, head: Group): boolean {
  return group.claimedAt - head.claimedAt < 0 || (group.claimedAt === head.claimedAt && group.id < head.id);
}
