/**
 * A Group: which machines it selects, and in which order groups win over each other.
 *
 *   1. higher priority                     5 before 0
 *   2. more labels and expressions         {mac, role} before {mac}, {mac, role Exists} before {mac}
 *   3. fewer expressions among them        {role} before {mac In}
 *   4. later selector text, by bytes       "uuid=1" before "mac=2": the order of matchbox v0.9.0
 *   5. smaller namespace/name              "a/web" before "b/web"
 *
 * The order is total, so that lists are sorted alike everywhere. It does not decide between Groups of the same keys and
 * operators that give something else: `contest.ts` does.
 */

import { compareBytes } from "../lib/order.ts";
import {
  type Expression,
  expressionText,
  isBroadExpression,
  isPositive,
  type Requirement,
  toRequirement,
} from "./expression.ts";
import type { JsonObject } from "./json.ts";
import { identityLabels, type Labels, normalizeLabel } from "./labels.ts";
import { tenantRank } from "./tenant-rank.ts";

/** A Group's spec after admission: defaults filled in, selector values normalised. */
export interface GroupSpec {
  readonly displayName?: string;
  /** Name of a Profile in the Group's own namespace. */
  readonly profile: string;
  /** Label to value; all must match. Empty only with `matchAll` or expressions. */
  readonly selector: Selector;
  /** All must hold, too; absent for none. At least one is positive if there is no label and no `matchAll`. */
  readonly expressions?: readonly Expression[];
  readonly matchAll: boolean;
  /** 0 to 1000. */
  readonly priority: number;
  /** Machines are answered 503 and wait. */
  readonly hold: boolean;
  /** Kernel arguments to append to those of its Profile; they are templates, too. Absent for none. */
  readonly args?: readonly string[];
  readonly metadata: JsonObject;
}

/**
 * Label to value, as in the document: for the single label of most Groups, a Map would take five times as much memory.
 * Labels are own members, whatever their names.
 */
export type Selector = Readonly<Record<string, string>>;

/** Which machines a spec selects. */
export type SelectorSpec = Pick<GroupSpec, "selector" | "expressions">;

/** The state of a Group besides its spec. Members are absent if nothing applies. */
export interface GroupState {
  /**
   * The newest version is refused, and no older one agrees with it on machines and Profile: it takes part in selection
   * and answers 503. With `outdated` the spec is that of the last accepted version.
   */
  readonly refused?: boolean;
  /**
   * davit serves an older version of its Profile, which its machines never got from this Group: they wait. `had` is the
   * Group's selector when it had that version, if ever. `refused` is set, too, for older versions of davit.
   */
  readonly oldProfile?: { readonly had?: SelectorSpec };
  /** The newest version, which is refused, sets `hold`; the accepted version does not. */
  readonly heldByRefused?: true;
  /**
   * Other Groups have this selector and priority, and davit picks none: it answers 503. Only versions of davit that do
   * not look for ties themselves read this.
   */
  readonly tied?: boolean;
  /** The object's newest version is refused or not valid, and this is an older one: an `Install` is not served. */
  readonly outdated?: true;
  /** For a person: how the Profile fails with the Group's newest version. `outdated` or `refused` is set, too. */
  readonly flaw?: string;
  /** It names no machine, and an unreadable Group may name one: an Install waits. */
  readonly doubted?: true;
  /** Nothing readable in the source defines it: an `Install` waits. */
  readonly leaving?: true;
  /** The source has had no news of its namespace for a while: its machines wait. */
  readonly unheard?: true;
  /** The store's index when this selector, or a wider one, was accepted. Between namespaces, the first claim wins. */
  readonly claimedAt?: number;
  /** The claims to values that were added since. */
  readonly claimedLater?: readonly LaterClaim[];
  /** There is an admin namespace, and the Group is in another one. */
  readonly tenant?: true;
}

/** Values of a label that were added to a selector later than the rest of it. */
export interface LaterClaim {
  /** As `GroupState.claimedAt`. */
  readonly at: number;
  readonly label: string;
  readonly values: readonly string[];
  /** The selector took these machines before without naming them: their claims by other labels keep their age. */
  readonly isName?: true;
}

/** Why its machines are refused: the first reason that applies. */
export type Barrier = "withheld" | "tied" | "oldProfile" | "refused" | "held";

/** A Group made ready for selection. */
export interface Group {
  /** `namespace/name`. */
  readonly id: string;
  /** `namespace/name` of its Profile. */
  readonly profileId: string;
  readonly selector: Selector;
  readonly expressions: readonly Requirement[];
  /** How many labels and expressions the selector has. */
  readonly requirementCount: number;
  /** The selector as text: sorted `key=value` and expressions, joined by commas. */
  readonly selectorText: string;
  readonly priority: number;
  /** See `GroupSpec`. */
  readonly args: readonly string[];
  readonly metadata: JsonObject;
  /** Undefined in nearly every Group. */
  readonly barrier: Barrier | undefined;
  /** An `Install` is not served from it: see `GroupState`. */
  readonly isOutdated: boolean;
  /** See `GroupState`. */
  readonly flaw: string | undefined;
  /** See `GroupState`. Of two Groups that differ only in this, the other one is current. */
  readonly isLeaving: boolean;
  /** See `GroupState`; 0 if the Group is older than the recording of claims. */
  readonly claimedAt: number;
  readonly claimedLater: readonly LaterClaim[];
  /** See `GroupState`. */
  readonly isTenant: boolean;
  /** How many labels and expressions count between namespaces: all of them, unless it is a tenant's. */
  readonly rankCount: number;
}

// Nearly every Group has none, and there may be 100,000.
const noArguments: readonly string[] = [];
const noLaterClaims: readonly LaterClaim[] = [];

/** Makes a Group ready for selection. */
export function toGroup(namespace: string, name: string, spec: GroupSpec, state: GroupState = {}): Group {
  const selector = trimmed(spec.selector);
  const expressions = spec.expressions === undefined ? noExpressions : spec.expressions.map(toRequirement);
  const requirementCount = Object.keys(selector).length + expressions.length;
  const isTenant = state.tenant === true;
  return {
    // Joined, not added: V8 keeps sums of texts in pieces, and every request reads these.
    id: [namespace, name].join("/"),
    profileId: [namespace, spec.profile].join("/"),
    selector,
    expressions,
    requirementCount,
    selectorText: selectorText(selector, expressions),
    priority: spec.priority,
    args: spec.args ?? noArguments,
    metadata: spec.metadata,
    barrier: barrierOf(spec, state),
    isOutdated: state.outdated === true || state.doubted === true,
    flaw: state.flaw,
    isLeaving: state.leaving === true,
    claimedAt: state.claimedAt ?? 0,
    claimedLater: state.claimedLater ?? noLaterClaims,
    isTenant,
    rankCount: isTenant ? tenantRank({ selector, expressions }) : requirementCount,
  };
}

function barrierOf({ hold }: GroupSpec, { unheard, oldProfile, refused, tied }: GroupState): Barrier | undefined {
  if (unheard === true) return "withheld";
  if (tied === true) return "tied";
  if (refused === true) return oldProfile === undefined ? "refused" : "oldProfile";
  return hold ? "held" : undefined;
}

const noExpressions: readonly Requirement[] = [];

/** Trimmed like labels of requests. Documents of older versions of davit may have blanks around identity labels. */
function trimmed(selector: Selector): Selector {
  const isTrimmed = identityLabels.every((label) => selector[label]?.trim() === selector[label]);
  if (isTrimmed) return selector;
  return Object.fromEntries(
    Object.entries(selector).map(([label, value]) => [label, normalizeLabel(label, value) ?? value]),
  );
}

/**
 * True for a spec that says which machines it selects. A catch-all must say so: a selector without a label and without
 * a positive expression would take nearly every machine.
 */
export function isSelecting({ selector, expressions = [], matchAll }: GroupSpec): boolean {
  return matchAll || Object.keys(selector).length > 0 || expressions.some(isPositive);
}

/**
 * True for a selector that nearly every machine may meet: it asks for no value, and for no pattern with enough fixed
 * characters.
 */
export function isBroad(spec: GroupSpec): boolean {
  return !spec.matchAll && isCatchAll(spec);
}

/** True for a selector that nearly every machine may meet, with `matchAll` or without. */
export function isCatchAll({ selector, expressions = [] }: Pick<GroupSpec, "selector" | "expressions">): boolean {
  if (Object.keys(selector).length > 0) return false;
  return expressions.every((expression) => !isPositive(expression) || isBroadExpression(expression));
}

/**
 * Normalises a selector's values like labels.
 * @returns the label with an impossible value, as `badLabel`; else the selector.
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

/** The selecting part of a Group, present or removed. */
export type Selection = Pick<Group, "selector" | "expressions">;

/** True when every label of the selector has its value and every expression holds; other labels do not matter. */
export function matches({ selector, expressions }: Selection, labels: Labels): boolean {
  for (const [label, value] of Object.entries(selector)) {
    if (labels.get(label) !== value) return false;
  }
  for (const { key, accepts } of expressions) {
    if (!accepts(labels.get(key))) return false;
  }
  return true;
}

/** Sorts the winning group first; zero only for the same group. */
export function compareGroups(a: Group, b: Group): number {
  return compareRanks(a, b) || compareBytes(a.id, b.id);
}

/** As `compareGroups`, without the names: zero for Groups that differ only in name. */
export function compareRanks(a: Rank, b: Rank): number {
  return compareCounts(a, b) || compareBytes(b.selectorText, a.selectorText);
}

/** As `compareRanks`, without the texts of the selectors. */
export function compareCounts(a: Rank, b: Rank): number {
  return (
    b.priority - a.priority || b.requirementCount - a.requirementCount || a.expressions.length - b.expressions.length
  );
}

type Rank = Pick<Group, "priority" | "requirementCount" | "expressions" | "selectorText">;

/** One label of a selector as text, also the key under which an index files it. */
export function labelText(label: string, value: string): string {
  return [label, value].join("=");
}

/** A selector as text: sorted `key=value` and expressions, joined by commas. */
export function selectorText(selector: Selector, expressions: readonly Expression[] = []): string {
  return [
    ...Object.entries(selector).map(([label, value]) => labelText(label, value)),
    ...expressions.map(expressionText),
  ]
    .toSorted(compareBytes)
    .join(",");
}
