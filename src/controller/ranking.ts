/**
 * Which Groups win over which, whatever machine asks: a Group that can never win, and Groups that nothing but their
 * names would tell apart. It holds every Group as the boot service has it or is about to have it, and finds these facts
 * by index, so that a change costs as much among 10,000 Groups as among ten. It reads no store and no source.
 */

import { compareBytes } from "../lib/order.ts";
import { type Group, labelText, matches } from "../model/group.ts";
import { SelectorIndex } from "../model/selector-index.ts";

/** What a Group is among the others. */
export type Standing =
  | { readonly kind: "free" }
  /** Every machine that it selects gets another Group. */
  | { readonly kind: "shadowed"; readonly by: Group }
  /** Groups of several namespaces, these among them, have the same selector and priority. */
  | { readonly kind: "tied"; readonly others: readonly string[] };

/** Groups to look at again after some have changed; those that have changed may be among them. */
export interface Affected {
  /** They have the same selector as one that changed. */
  readonly siblings: ReadonlySet<string>;
  /** One that changed selects all of their machines, and others. */
  readonly others: ReadonlySet<string>;
}

export class Ranking {
  readonly #groups = new Map<string, Group>();
  readonly #bySelector = new Map<string, Set<Group>>();
  readonly #byLabel = new Map<string, Set<Group>>();
  readonly #index = new SelectorIndex<Group>();
  /** Groups that came, went or changed, one for each selector: the one with the highest priority. */
  readonly #touched = new Map<string, Group>();
  readonly #tiesAcrossNamespaces: boolean;

  /** @param options.tiesAcrossNamespaces false where the name decides among Groups of all namespaces. */
  constructor({ tiesAcrossNamespaces }: { readonly tiesAcrossNamespaces: boolean }) {
    this.#tiesAcrossNamespaces = tiesAcrossNamespaces;
  }

  /** Takes in what a Group is now; undefined for one that is gone. */
  update(id: string, group: Group | undefined): void {
    const before = this.#groups.get(id);
    if (before?.selectorText === group?.selectorText && before?.priority === group?.priority) return;
    if (before !== undefined) this.#remove(before);
    if (group !== undefined) this.#add(group);
  }

  /** Whose standing may have changed by the updates since the last call. */
  takeAffected(): Affected {
    const siblings = new Set<string>();
    const others = new Set<string>();
    for (const group of this.#touched.values()) {
      for (const { id } of this.#bySelector.get(group.selectorText) ?? []) siblings.add(id);
      // A Group with more labels wins anyway, unless the other one has a priority.
      if (group.priority > 0) for (const { id } of this.#selectedBy(group)) others.add(id);
    }
    this.#touched.clear();
    return { siblings, others };
  }

  /** What a Group is among those that were taken in, which it is one of. */
  standingOf(group: Group): Standing {
    // Whoever wins for a machine that has just these labels wins for every machine that has them among others.
    const winner = this.#index.find(group.selector);
    const others = this.tiedWith(group);
    if (others.length > 0 && (winner === undefined || isSameRank(winner, group))) return { kind: "tied", others };
    return winner === undefined || winner.id === group.id ? free : { kind: "shadowed", by: winner };
  }

  /** Who else has the same selector and priority, sorted; none unless they are of several namespaces. */
  tiedWith(group: Group): readonly string[] {
    if (!this.#tiesAcrossNamespaces) return [];
    const others = [...(this.#bySelector.get(group.selectorText) ?? [])].filter(
      (other) => other.id !== group.id && isSameRank(other, group),
    );
    const isTie = others.some((other) => namespaceOf(other) !== namespaceOf(group));
    return isTie ? others.map(({ id }) => id).toSorted(compareBytes) : [];
  }

  #selectedBy(group: Group): readonly Group[] {
    const sets = labelTextsOf(group).map((text) => this.#byLabel.get(text) ?? new Set<Group>());
    const [smallest = new Set<Group>()] = sets.toSorted((a, b) => a.size - b.size);
    return [...smallest].filter(({ selector }) => matches(group, selector));
  }

  #add(group: Group): void {
    this.#groups.set(group.id, group);
    this.#index.add(group);
    addTo(this.#bySelector, group.selectorText, group);
    for (const text of labelTextsOf(group)) addTo(this.#byLabel, text, group);
    this.#touch(group);
  }

  #remove(group: Group): void {
    this.#groups.delete(group.id);
    this.#index.remove(group);
    removeFrom(this.#bySelector, group.selectorText, group);
    for (const text of labelTextsOf(group)) removeFrom(this.#byLabel, text, group);
    this.#touch(group);
  }

  #touch(group: Group): void {
    const known = this.#touched.get(group.selectorText);
    if (known === undefined || known.priority < group.priority) this.#touched.set(group.selectorText, group);
  }
}

const free: Standing = { kind: "free" };

function isSameRank(a: Group, b: Group): boolean {
  return a.priority === b.priority && a.selectorText === b.selectorText;
}

function namespaceOf({ id }: Group): string {
  return id.slice(0, id.indexOf("/"));
}

function labelTextsOf({ selector }: Group): readonly string[] {
  return [...selector].map(([label, value]) => labelText(label, value));
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
