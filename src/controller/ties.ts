/**
 * Groups of one selector and priority, which nothing but their names would tell apart: whether they are of several
 * namespaces, and who is first among them. What is asked costs the same among ten of them and among ten thousand.
 */

import { compareBytes } from "../lib/order.ts";
import type { Group } from "../model/group.ts";

/** Who reads of a tie is told five names, and that there are more. */
const maxOthers = 6;

interface Rank {
  /** In byte order. */
  readonly ids: string[];
  /** How many of them each namespace has. */
  readonly namespaces: Map<string, number>;
}

export class Ties {
  readonly #ranks = new Map<string, Rank>();

  /** Takes a Group in that is not in yet. */
  add(group: Group): void {
    const { ids, namespaces } = this.#ranks.get(rankOf(group)) ?? this.#newRank(group);
    ids.splice(placeOf(group.id, ids), 0, group.id);
    const namespace = namespaceOf(group);
    namespaces.set(namespace, (namespaces.get(namespace) ?? 0) + 1);
  }

  /** Takes a Group out, as it was taken in. */
  remove(group: Group): void {
    const rank = this.#ranks.get(rankOf(group));
    if (rank === undefined) return;
    const { ids, namespaces } = rank;
    ids.splice(placeOf(group.id, ids), 1);
    const namespace = namespaceOf(group);
    const left = (namespaces.get(namespace) ?? 0) - 1;
    if (left > 0) namespaces.set(namespace, left);
    else namespaces.delete(namespace);
    if (ids.length === 0) this.#ranks.delete(rankOf(group));
  }

  /** The first six of the others, in byte order, where all of them are of several namespaces; else none. */
  othersOf(group: Group): readonly string[] {
    const rank = this.#ranks.get(rankOf(group));
    if (rank === undefined || rank.namespaces.size < 2) return [];
    const first = rank.ids.slice(0, maxOthers + 1);
    return first.filter((id) => id !== group.id).slice(0, maxOthers);
  }

  #newRank(group: Group): Rank {
    const rank: Rank = { ids: [], namespaces: new Map() };
    this.#ranks.set(rankOf(group), rank);
    return rank;
  }
}

/** Where an id is in a sorted list, or would be. */
function placeOf(id: string, ids: readonly string[]): number {
  let [from, to] = [0, ids.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (compareBytes(ids[middle] ?? "", id) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

function rankOf({ priority, selectorText }: Group): string {
  return `${priority} ${selectorText}`;
}

function namespaceOf({ id }: Group): string {
  return id.slice(0, id.indexOf("/"));
}
