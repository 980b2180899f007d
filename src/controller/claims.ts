/**
 * When a Group's claim to its machines was accepted: between Groups of several namespaces that match a machine alike, the
 * first claim wins. It is kept in the Group's document for as long as the selector does not widen. Values that are added
 * to a list are claimed from then on, and the others as before: who adds a machine to a list loses none. Pure.
 */

import type { GroupDocument } from "../model/documents.ts";
import { toRequirement } from "../model/expression.ts";
import type { GroupSpec, GroupState, LaterClaim, Selection } from "../model/group.ts";
import { implies } from "../model/implication.ts";

export type Claim = Pick<GroupState, "claimedAt" | "claimedLater" | "tenant">;

// Beyond that, the oldest additions count as if they had come together: later, never earlier.
const mostLaterClaims = 32;

/**
 * The claim of a Group.
 * @param stored its document so far; undefined for a new Group.
 * @param index of the store, now.
 */
export function claimOf(stored: GroupDocument | undefined, spec: GroupSpec, index: number): Claim {
  if (stored === undefined) return { claimedAt: index };
  const [before, after] = [selectionOf(stored.spec), selectionOf(spec)];
  if (implies(after, before)) return keptClaim(stored);
  const added = addedValues(before, after);
  if (added === undefined) return { claimedAt: index };
  const { claimedAt, claimedLater = [] } = stored;
  const claim = { claimedLater: shortened([...claimedLater, { at: index, ...added }]) };
  return claimedAt === undefined ? claim : { claimedAt, ...claim };
}

/** A Group's document with a claim instead of the one that it has. */
export function withClaim({ claimedAt: _, claimedLater: __, tenant: ___, ...document }: GroupDocument, claim: Claim) {
  return { ...document, ...claim };
}

/** The part of a claim that is about machines with this label. */
export function claimOn({ claimedAt, claimedLater = [], tenant }: Claim, label: string, value: string): Claim {
  const later = claimedLater.flatMap((each) => (each.label !== label || each.values.includes(value) ? [each.at] : []));
  const at = later.reduce((latest, each) => Math.max(latest, each), claimedAt ?? 0);
  return { ...(at > 0 && { claimedAt: at }), ...(tenant === true && { tenant }) };
}

function keptClaim({ claimedAt, claimedLater }: Claim): Claim {
  return { ...(claimedAt !== undefined && { claimedAt }), ...(claimedLater !== undefined && { claimedLater }) };
}

function selectionOf({ selector, expressions = [] }: GroupSpec): Selection {
  return { selector, expressions: expressions.map(toRequirement) };
}

/** The label of which a selector names more values than before, and those; undefined where it is wider otherwise. */
function addedValues(before: Selection, after: Selection): Pick<LaterClaim, "label" | "values"> | undefined {
  const labels = [...Object.keys(before.selector), ...before.expressions.map(({ key }) => key)];
  for (const label of new Set(labels)) {
    const [known, values] = [valuesOf(before, label), valuesOf(after, label)];
    if (known === undefined || values === undefined) continue;
    if (!implies(without(after, label), without(before, label))) continue;
    return { label, values: values.filter((value) => !known.includes(value)) };
  }
  return undefined;
}

/** The values that a label may have, where nothing else is said of it. */
function valuesOf({ selector, expressions }: Selection, label: string): readonly string[] | undefined {
  const own = expressions.filter(({ key }) => key === label);
  const [only] = own;
  const value = Object.hasOwn(selector, label) ? selector[label] : undefined;
  if (value !== undefined) return own.length === 0 ? [value] : undefined;
  return own.length === 1 && only?.operator === "In" ? only.values : undefined;
}

function without({ selector, expressions }: Selection, label: string): Selection {
  return {
    selector: Object.fromEntries(Object.entries(selector).filter(([name]) => name !== label)),
    expressions: expressions.filter(({ key }) => key !== label),
  };
}

function shortened(claims: readonly LaterClaim[]): readonly LaterClaim[] {
  if (claims.length <= mostLaterClaims) return claims;
  const old = Map.groupBy(claims.slice(0, 1 - mostLaterClaims), ({ label }) => label);
  const merged = [...old].map(([label, same]) => ({
    at: same.reduce((last, { at }) => Math.max(last, at), 0),
    label,
    values: [...new Set(same.flatMap(({ values }) => values))],
  }));
  return [...merged, ...claims.slice(1 - mostLaterClaims)];
}
