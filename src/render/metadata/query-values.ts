/**
 * Names and sorts the labels of a request for `/metadata`. Machines send the same few labels in the same order again
 * and again, so the names and their order are cached. Making them takes longer than all the rest of an answer.
 */

import { compareBytes } from "../../lib/order.ts";
import { nameOf } from "./env-lines.ts";

/** The line of a label in the answer. */
interface QueryLine {
  readonly name: string;
  /** The name and a `=`. */
  readonly start: string;
  /** The position of the label, and of its value, in the request. */
  readonly at: number;
}

export interface QueryValues {
  /** Sorted by name. If several labels share a name, the lowest label in byte order wins. */
  readonly lines: readonly QueryLine[];
  /** The values of all labels, in the order of the request. */
  readonly values: readonly string[];
}

/** The labels of a request up to one of them: a tree by labels has one `LabelOrder` for each order. */
class LabelOrder {
  readonly next = new Map<string, LabelOrder>();
  lines: readonly QueryLine[] | undefined;
}

/** The most cached orders. A site has some dozens, but a stranger can send any. */
const maxOrders = 1_000;
/** Requests with a longer label are not cached: no site has them. */
const maxLabelLength = 64;
let first = new LabelOrder();
let orderCount = 0;

/** Returns the labels of a request as `/metadata` shows them. */
export function queryValues(labels: ReadonlyMap<string, string>): QueryValues {
  const values: string[] = [];
  let order = first;
  for (const [label, value] of labels) {
    values.push(value);
    order = order.next.get(label) ?? grown(order, label);
  }
  order.lines ??= queryLinesOf([...labels.keys()]);
  return { lines: order.lines, values };
}

function grown(order: LabelOrder, label: string): LabelOrder {
  const next = new LabelOrder();
  if (label.length > maxLabelLength) return next;
  order.next.set(label, next);
  orderCount++;
  if (orderCount > maxOrders) [first, orderCount] = [new LabelOrder(), 0];
  return next;
}

function queryLinesOf(labels: readonly string[]): readonly QueryLine[] {
  const named = labels.map((label, at) => ({ label, at, name: nameOf(["request", "query", label]) }));
  const sorted = named.toSorted((a, b) => compareBytes(a.name, b.name) || compareBytes(a.label, b.label));
  return sorted
    .filter(({ name }, at) => name !== sorted[at - 1]?.name)
    .map(({ name, at }) => ({ name, start: `${name}=`, at }));
}
