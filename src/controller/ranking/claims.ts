/**
 * Decides how old a Group's claim to its machines is. If alike Groups of several namespaces match a machine, the first
 * claim wins. A Group keeps its claim as long as its selector does not widen. Values that are added to a list get a new
 * claim, and the other values keep theirs: adding a machine to a list loses no claim. Pure.
 */

import type { GroupDocument } from "../../model/objects/documents.ts";
import type { GroupSpec, GroupState, LaterClaim, Selection } from "../../model/objects/group.ts";
import { implies, selectionOf } from "../../model/selection/implication.ts";

export type Claim = Pick<GroupState, "claimedAt" | "claimedLater" | "tenant">;

// Beyond this limit, the oldest later claims are merged into one for each label, which has the latest index among them.
const mostLaterClaims = 32;

type ClaimPlace = Omit<LaterClaim, "at">;

/**
 * The claim of a Group.
 * @param stored the Group's stored document; undefined for a new Group.
 * @param index of the store, for claims made now.
 */
export function claimOf(stored: GroupDocument | undefined, spec: GroupSpec, index: number): Claim {
  if (stored === undefined) return { claimedAt: index };
  const [before, after] = [selectionOf(stored.spec), selectionOf(spec)];
  const added = implies(after, before) ? newlyNamed(before, after) : addedValues(before, after);
  if (added === undefined) return { claimedAt: index };
  const { claimedAt, claimedLater = [] } = stored;
  const later = added.map((each) => ({ at: index, ...each }));
  const claims = shortened([...claimedLater.flatMap((each) => stillNamed(each, after)), ...later]);
  return { ...(claimedAt !== undefined && { claimedAt }), ...(claims.length > 0 && { claimedLater: claims }) };
}

/** A Group's document with this claim instead of its own. */
export function withClaim({ claimedAt: _, claimedLater: __, tenant: ___, ...document }: GroupDocument, claim: Claim) {
  return { ...document, ...claim };
}

/** The claim to machines that have this value of this label. */
export function claimOn({ claimedAt, claimedLater = [], tenant }: Claim, label: string, value: string): Claim {
  const later = claimedLater.flatMap((each) => (counts(each, label, value) ? [each.at] : []));
  const at = later.reduce((latest, each) => Math.max(latest, each), claimedAt ?? 0);
  return { ...(at > 0 && { claimedAt: at }), ...(tenant === true && { tenant }) };
}

function counts({ label, values, isName }: LaterClaim, of: string, value: string): boolean {
  return label === of ? values.includes(value) : isName !== true;
}

/**
 * The later claim, without values that the selector no longer names. If the selector names such a value again, that is
 * a new claim.
 */
function stillNamed(claim: LaterClaim, selection: Selection): readonly LaterClaim[] {
  const named = new Set(namedValues(selection, claim.label));
  const values = claim.values.filter((value) => named.has(value));
  return values.length === 0 ? [] : [{ ...claim, values }];
}

/**
 * The values that a narrower selector names, for each label whose values the previous selector did not name. These
 * values get a new claim, because the previous selector, for example for a whole vendor, claimed no single machine.
 */
function newlyNamed(before: Selection, after: Selection): readonly ClaimPlace[] {
  return labelsOf(after).flatMap((label) => {
    const values = namedValues(after, label);
    return values === undefined || namedValues(before, label) !== undefined ? [] : [{ label, values, isName: true }];
  });
}

/**
 * The values that a selector names for a label, by `matchLabels` or `In`; undefined if it names none. Other expressions
 * on the label do not matter.
 */
function namedValues({ selector, expressions }: Selection, label: string): readonly string[] | undefined {
  if (Object.hasOwn(selector, label)) return [selector[label] ?? ""];
  const list = expressions.find(({ key, operator }) => key === label && operator === "In");
  return list?.operator === "In" ? list.values : undefined;
}

function labelsOf({ selector, expressions }: Selection): readonly string[] {
  return [...new Set([...Object.keys(selector), ...expressions.map(({ key }) => key)])];
}

/** The label whose list of values grew, and the added values. Undefined if the selector widened in another way. */
function addedValues(before: Selection, after: Selection): readonly ClaimPlace[] | undefined {
  for (const label of labelsOf(before)) {
    const [known, values] = [valuesOf(before, label), valuesOf(after, label)];
    if (known === undefined || values === undefined) continue;
    if (!implies(without(after, label), without(before, label))) continue;
    const others = new Set(known);
    return [{ label, values: values.filter((value) => !others.has(value)) }];
  }
  return undefined;
}

/** As `namedValues`, but undefined if another expression is about the label, too. */
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
  const alike = ({ label, isName }: LaterClaim) => `${label} ${isName}`;
  const old = Map.groupBy(claims.slice(0, 1 - mostLaterClaims), alike);
  const merged = [...old.values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : together(first, others),
  );
  return [...merged, ...claims.slice(1 - mostLaterClaims)];
}

/** Merges claims. All of their values get the latest index among them. */
function together(first: LaterClaim, others: readonly LaterClaim[]): LaterClaim {
  const at = others.reduce((last, each) => Math.max(last, each.at), first.at);
  return { ...first, at, values: [...new Set([first, ...others].flatMap(({ values }) => values))] };
}
