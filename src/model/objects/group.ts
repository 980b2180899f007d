/**
 * A Group: which machines it selects, and in which order Groups win over each other.
 *
 *   1. higher priority                     5 before 0
 *   2. more labels and expressions         {mac, role} before {mac}, {mac, role Exists} before {mac}
 *   3. fewer expressions among them        {role} before {mac In}
 *   4. later selector text, by bytes       "uuid=1" before "mac=2": the order of matchbox v0.9.0
 *   5. smaller namespace/name              "a/web" before "b/web"
 *
 * No two Groups are equal in this order, so lists are sorted alike everywhere. But rules 4 and 5 choose no winner
 * between Groups with the same keys and operators and different outcomes. For these, `contest.ts` decides.
 */

import { compareBytes } from "../../lib/order.ts";
import type { JsonObject } from "../json.ts";
import {
  type Expression,
  expressionText,
  isBroadExpression,
  isPositive,
  type Requirement,
  toRequirement,
} from "../labels/expression.ts";
import { identityLabels, type Labels, normalizeLabel, valuesOf } from "../labels/labels.ts";
import type { InstallGrant } from "../permits/permit.ts";
import { tenantRank } from "./tenant-rank.ts";

/** A Group's spec after admission: defaults filled in, selector values normalised. */
export interface GroupSpec {
  readonly displayName?: string;
  /** Name of a Profile in the Group's own namespace. */
  readonly profile: string;
  /** Label to value; a machine must have all of them. Empty only with `matchAll` or expressions. */
  readonly selector: Selector;
  /**
   * Expressions that a machine must meet, too; absent if there are none. Without a label and without `matchAll`, at
   * least one expression is positive (`isPositive`).
   */
  readonly expressions?: readonly Expression[];
  readonly matchAll: boolean;
  /** 0 to 1000. */
  readonly priority: number;
  /** True if the Group's machines are answered 503 and wait. */
  readonly hold: boolean;
  /** `Required`: the Group serves only machines with an approved Machine object; absent if it serves all. */
  readonly approval?: "Required";
  /** True if unknown machines become Machine objects that wait for approval; absent if they do not. */
  readonly enroll?: true;
  /** Absent if the Group grants no install. */
  readonly install?: InstallGrant;
  /** True if davit serves the Group's configs only by HTTPS; absent if not. */
  readonly requireTls?: true;
  /** Kernel arguments to append to those of the Profile. They are templates, too. Absent if there are none. */
  readonly args?: readonly string[];
  readonly metadata: JsonObject;
}

/**
 * Label to value, a plain object. Most Groups have a single label, for which a Map would take five times as much
 * memory. Every label is an own property, even one that is named `constructor`: look labels up by `Object.hasOwn`.
 */
export type Selector = Readonly<Record<string, string>>;

/** Which machines a spec selects. */
export type SelectorSpec = Pick<GroupSpec, "selector" | "expressions">;

/** The state of a Group besides its spec. A member is absent if it does not apply. */
export interface GroupState {
  /**
   * The newest version is refused, and no accepted version selects the same machines for the same Profile. The Group
   * still takes part in selection, but its machines are answered 503. If `outdated` is also set, the spec is that of
   * the last accepted version.
   */
  readonly refused?: boolean;
  /**
   * davit serves an older version of the Profile, and the Group selects machines that never got the Profile from this
   * Group. The Group's machines wait. `had` is the selector with which the Group had the Profile before; absent if it
   * never had the Profile. `refused` is set, too: older versions of davit do not know `oldProfile`.
   */
  readonly oldProfile?: { readonly had?: SelectorSpec };
  /** The refused newest version sets `hold`, and the accepted version does not. `spec.hold` is true. */
  readonly heldByRefused?: true;
  /**
   * Groups with the same selector and priority tie with this one, and davit answers their machines 503. Newer versions
   * of the boot service find ties without this mark; older ones do not.
   */
  readonly tied?: boolean;
  /** The newest version of the object is refused or cannot be used. No `Install` is served. */
  readonly outdated?: true;
  /** How the Profile fails with the Group's newest version, for people. `outdated` or `refused` is set, too. */
  readonly flaw?: string;
  /** The Group names no machine, and an unreadable Group may name one of its machines. An `Install` waits. */
  readonly doubted?: true;
  /** No readable part of the source defines the Group any more. An `Install` waits. */
  readonly leaving?: true;
  /** The Group's namespace is lost: the source has had no news of it for a while. The Group's machines wait. */
  readonly unheard?: true;
  /**
   * The store's index at which davit accepted this selector. A selector that becomes narrower keeps its index. Between
   * namespaces, the first claim wins.
   */
  readonly claimedAt?: number;
  /** Claims to values that the selector named only after `claimedAt`. */
  readonly claimedLater?: readonly LaterClaim[];
  /** There is an admin namespace, and the Group is in another namespace. */
  readonly tenant?: true;
}

/** A claim to values of a label that were added to a selector after its first claim. */
export interface LaterClaim {
  /** As `GroupState.claimedAt`. */
  readonly at: number;
  readonly label: string;
  readonly values: readonly string[];
  /**
   * Set if the selector matched these machines before, without naming their values. The tombstones of their other
   * labels then keep the older claim.
   */
  readonly isName?: true;
}

/** Why a Group's machines are refused although the Group wins. If several reasons apply, `barrierOf` chooses one. */
export type Barrier = "withheld" | "tied" | "oldProfile" | "refused" | "held";

/** What a Group asks of its machines, and what it grants to them. */
export type GroupPermits = Pick<GroupSpec, "approval" | "enroll" | "install">;

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
  readonly permits: GroupPermits | undefined;
  /** See `GroupSpec.requireTls`. */
  readonly requiresTls: boolean;
  /** Undefined in nearly every Group. */
  readonly barrier: Barrier | undefined;
  /** No `Install` is served: see `outdated` and `doubted` of `GroupState`. */
  readonly isOutdated: boolean;
  /** See `GroupState`. */
  readonly flaw: string | undefined;
  /** See `GroupState`. */
  readonly isLeaving: boolean;
  /** See `GroupState`; 0 if davit accepted the Group before it recorded claims. */
  readonly claimedAt: number;
  readonly claimedLater: readonly LaterClaim[];
  /** See `GroupState`. */
  readonly isTenant: boolean;
  /** How many labels and expressions count between namespaces: all, or for a tenant's Group its `tenantRank`. */
  readonly rankCount: number;
}

// Shared lists: there may be 100,000 Groups, and nearly all have neither arguments nor later claims.
const noArguments: readonly string[] = [];
const noLaterClaims: readonly LaterClaim[] = [];

/** Makes a Group ready for selection. */
export function toGroup(namespace: string, name: string, spec: GroupSpec, state: GroupState = {}): Group {
  const selector = trimmed(spec.selector);
  const expressions = spec.expressions === undefined ? noExpressions : spec.expressions.map(toRequirement);
  const requirementCount = Object.keys(selector).length + expressions.length;
  const isTenant = state.tenant === true;
  return {
    // `join` instead of `+`: V8 keeps concatenated strings in pieces, and every request reads these.
    id: [namespace, name].join("/"),
    profileId: [namespace, spec.profile].join("/"),
    selector,
    expressions,
    requirementCount,
    selectorText: selectorText(selector, expressions),
    priority: spec.priority,
    args: spec.args ?? noArguments,
    metadata: spec.metadata,
    permits: permitsOf(spec),
    requiresTls: spec.requireTls === true,
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

/** Returns what a Group asks and grants; undefined if it does neither. */
export function permitsOf({ approval, enroll, install }: GroupPermits): GroupPermits | undefined {
  if (approval === undefined && enroll === undefined && install === undefined) return undefined;
  return { ...(approval && { approval }), ...(enroll && { enroll }), ...(install && { install }) };
}

function barrierOf({ hold }: GroupSpec, { unheard, oldProfile, refused, tied }: GroupState): Barrier | undefined {
  if (unheard === true) return "withheld";
  if (tied === true) return "tied";
  if (refused === true) return oldProfile === undefined ? "refused" : "oldProfile";
  return hold ? "held" : undefined;
}

const noExpressions: readonly Requirement[] = [];

/** Trims identity labels like those of requests. Documents of older versions of davit may have blanks around them. */
function trimmed(selector: Selector): Selector {
  const isTrimmed = identityLabels.every((label) => selector[label]?.trim() === selector[label]);
  if (isTrimmed) return selector;
  return Object.fromEntries(
    Object.entries(selector).map(([label, value]) => [label, normalizeLabel(label, value) ?? value]),
  );
}

/**
 * True for a spec that states which machines it selects: by labels, by a positive expression or by `matchAll`. Without
 * these it would select nearly every machine by mistake, so a catch-all must set `matchAll`.
 */
export function isSelecting({ selector, expressions = [], matchAll }: GroupSpec): boolean {
  return matchAll || Object.keys(selector).length > 0 || expressions.some(isPositive);
}

/**
 * True for a selector that nearly every machine may meet, although `matchAll` is not set. It asks for no value, and for
 * no pattern with enough fixed characters.
 */
export function isBroad(spec: GroupSpec): boolean {
  return !spec.matchAll && isCatchAll(spec);
}

/** Like `isBroad`, but also true with `matchAll`. */
export function isCatchAll({ selector, expressions = [] }: Pick<GroupSpec, "selector" | "expressions">): boolean {
  if (Object.keys(selector).length > 0) return false;
  return expressions.every((expression) => !isPositive(expression) || isBroadExpression(expression));
}

/**
 * Returns the MAC addresses of a list. The ledger counts each as a separate machine. None if the selector names one
 * address or a uuid.
 */
export function listedMacs({ selector, expressions = [] }: SelectorSpec): readonly string[] {
  if (Object.hasOwn(selector, "mac") || Object.hasOwn(selector, "uuid")) return [];
  const values = expressions.flatMap((each) => (each.key === "mac" && each.operator === "In" ? each.values : []));
  return values.length > 1 ? values : [];
}

/**
 * Normalises a selector's values like labels.
 * @returns the selector. If no machine can have one of the values, its label as `badLabel`.
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

/** The parts of a Group, present or removed, that decide which machines match. */
export type Selection = Pick<Group, "selector" | "expressions">;

/**
 * True when a machine has every label of the selector with its value, and meets every expression. If a label has
 * several values (`Labels.further`), one of them is enough, but `NotIn` and `DoesNotExist` must hold for all.
 */
export function matches({ selector, expressions }: Selection, labels: Labels): boolean {
  for (const [label, value] of Object.entries(selector)) {
    if (labels.get(label) !== value && labels.further?.get(label)?.includes(value) !== true) return false;
  }
  for (const requirement of expressions) {
    if (!meets(requirement, labels)) return false;
  }
  return true;
}

/** True when a machine meets an expression: see `matches`. */
export function meets(requirement: Requirement, labels: Labels): boolean {
  const { key, accepts } = requirement;
  if (labels.further?.has(key) !== true) return accepts(labels.get(key));
  const values = valuesOf(labels, key);
  return isPositive(requirement) ? values.some(accepts) : values.every(accepts);
}

/** Sorts the winning group first; zero only for the same group. */
export function compareGroups(a: Group, b: Group): number {
  return compareRanks(a, b) || compareBytes(a.id, b.id);
}

/** Like `compareGroups`, but without names: zero for Groups that differ only in name. */
export function compareRanks(a: Rank, b: Rank): number {
  return compareCounts(a, b) || compareBytes(b.selectorText, a.selectorText);
}

/** Like `compareRanks`, but without the texts of the selectors. */
export function compareCounts(a: Rank, b: Rank): number {
  return (
    b.priority - a.priority || b.requirementCount - a.requirementCount || a.expressions.length - b.expressions.length
  );
}

type Rank = Pick<Group, "priority" | "requirementCount" | "expressions" | "selectorText">;

/** Returns one label of a selector as text: `key=value`. */
export function labelText(label: string, value: string): string {
  return [label, value].join("=");
}

/** Returns a selector as text: sorted `key=value` and expressions, joined by commas. */
export function selectorText(selector: Selector, expressions: readonly Expression[] = []): string {
  return [
    ...Object.entries(selector).map(([label, value]) => labelText(label, value)),
    ...expressions.map(expressionText),
  ]
    .toSorted(compareBytes)
    .join(",");
}
