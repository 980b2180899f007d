/**
 * A Group: which machines it selects, and in which order groups win over each other.
 *
 * The order is total, so that a machine gets the same answer whatever the order of files or events:
 *   1. higher priority                     5 before 0
 *   2. more selector labels                {mac, role} before {mac}
 *   3. later selector text, by bytes       "uuid=1" before "mac=2": the order of matchbox v0.9.0
 *   4. smaller namespace/name              "a/web" before "b/web"
 */

import { compareBytes } from "../lib/order.ts";
import type { JsonObject } from "./json.ts";
import { type Labels, normalizeLabel } from "./labels.ts";

/** A Group's spec after admission: defaults filled in, selector values normalised. */
export interface GroupSpec {
  readonly displayName?: string;
  /** Name of a Profile in the Group's own namespace. */
  readonly profile: string;
  /** Label to value; all must match. Empty only with `matchAll`. */
  readonly selector: Readonly<Record<string, string>>;
  readonly matchAll: boolean;
  /** 0 to 1000. */
  readonly priority: number;
  /** Machines are answered 503 and wait. */
  readonly hold: boolean;
  readonly metadata: JsonObject;
}

/** A Group made ready for selection. */
export interface Group {
  /** `namespace/name`. */
  readonly id: string;
  /** `namespace/name` of its Profile. */
  readonly profileId: string;
  readonly selector: ReadonlyMap<string, string>;
  /** How many labels the selector has. */
  readonly labelCount: number;
  /** The selector as text: sorted `key=value` joined by commas. */
  readonly selectorText: string;
  readonly priority: number;
  readonly hold: boolean;
  readonly metadata: JsonObject;
}

/** Makes a Group ready for selection. */
export function toGroup(namespace: string, name: string, spec: GroupSpec): Group {
  const selector = new Map(Object.entries(spec.selector));
  return {
    // Joined, not added: sums of texts stay in pieces, and these are read with every request.
    id: [namespace, name].join("/"),
    profileId: [namespace, spec.profile].join("/"),
    selector,
    labelCount: selector.size,
    selectorText: selectorText(selector),
    priority: spec.priority,
    hold: spec.hold,
    metadata: spec.metadata,
  };
}

/**
 * Normalises a selector's values as labels are.
 * @returns the label whose value cannot be one, as `badLabel`; else the selector.
 */
export function normalizeSelector(
  matchLabels: Readonly<Record<string, string>>,
): { readonly selector: Record<string, string> } | { readonly badLabel: string } {
  const entries: [string, string][] = [];
  for (const [label, text] of Object.entries(matchLabels)) {
    const value = normalizeLabel(label, text);
    if (value === undefined) return { badLabel: label };
    entries.push([label, value]);
  }
  return { selector: Object.fromEntries(entries) };
}

/** True when every label of the selector has its value; extra labels never prevent a match. */
export function matches(group: Group, labels: Labels): boolean {
  return hasAll(group.selector, labels);
}

/** As `matches`, of a selector whose Group may be gone. */
export function hasAll(selector: ReadonlyMap<string, string>, labels: Labels): boolean {
  for (const [label, value] of selector) {
    if (labels.get(label) !== value) return false;
  }
  return true;
}

/** Sorts the winning group first; zero only for the same group. */
export function compareGroups(a: Group, b: Group): number {
  return (
    b.priority - a.priority ||
    b.labelCount - a.labelCount ||
    compareBytes(b.selectorText, a.selectorText) ||
    compareBytes(a.id, b.id)
  );
}

/** One label of a selector as text, also the key under which an index files it. */
export function labelText(label: string, value: string): string {
  return `${label}=${value}`;
}

/** A selector as text: sorted `key=value` joined by commas. */
export function selectorText(selector: Iterable<readonly [label: string, value: string]>): string {
  return [...selector]
    .map(([label, value]) => labelText(label, value))
    .toSorted(compareBytes)
    .join(",");
}
