/**
 * Who gets a machine that several Groups match alike: with equal priority and counts, the same keys and operators, and
 * another outcome. A name never decides.
 *
 * - Of one namespace: none of them.
 * - Of the admin namespace and others: that of the admin namespace.
 * - Of several namespaces else: the one that claimed the machine first. None, where that is not known.
 *
 * Pure.
 */

import { compareGroups, type Group } from "./group.ts";
import type { Labels } from "./labels.ts";

/** What a contest for a machine comes to. */
export interface Contest<Entry extends Group> {
  /** Undefined where no Group matches. */
  readonly winner: Entry | undefined;
  /** Groups that nothing but their names puts behind the winner: with any of them, nobody gets the machine. */
  readonly rivals: readonly Entry[];
}

/** Decides between the Groups that match a machine. @param labels the machine's. */
export function settle<Entry extends Group>(matching: Iterable<Entry>, labels: Labels): Contest<Entry> {
  let left = [...matching].toSorted(compareGroups);
  for (;;) {
    const [first] = left;
    if (first === undefined) return { winner: undefined, rivals: [] };
    const alike = new Set(left.filter((other) => isAlike(first, other)));
    const holders = holdersOf(alike, labels);
    if (holders.has(first)) return { winner: first, rivals: [...holders].filter((other) => isRival(first, other)) };
    // Without those that lose it is as if they were not there: the order decides between the others.
    left = left.filter((each) => !alike.has(each) || holders.has(each));
  }
}

/** True for another Group that may match the same machines as this one, with as much right, and gives something else. */
export function isRival(group: Group, other: Group): boolean {
  if (group === other || !isAlike(group, other)) return false;
  return !isSameNamespace(group, other) || !isSameOutcome(group, other);
}

/** Those of the admin namespace, or that claimed the machine first; of several namespaces, where it is not known which. */
function holdersOf<Entry extends Group>(alike: ReadonlySet<Entry>, labels: Labels): ReadonlySet<Entry> {
  const admins = [...alike].filter(({ isTenant }) => !isTenant);
  if (admins.length > 0 && admins.length < alike.size) return holdersOf(new Set(admins), labels);
  const claims = new Map<string, number>();
  for (const group of alike) {
    const namespace = namespaceOf(group);
    claims.set(namespace, Math.min(claims.get(namespace) ?? Number.POSITIVE_INFINITY, claimOf(group, labels)));
  }
  if (claims.size === 1) return alike;
  const first = [...claims.values()].reduce((least, claim) => Math.min(least, claim));
  return new Set([...alike].filter((group) => claims.get(namespaceOf(group)) === first));
}

/** True when a Group of another namespace comes before one that asks for the same: by the admin's right, or an older claim. */
export function claimsBefore(group: Claimant, other: Claimant, labels: Labels): boolean {
  if (group.isTenant !== other.isTenant) return other.isTenant;
  return !isSameNamespace(group, other) && claimOf(group, labels) < claimOf(other, labels);
}

type Claimant = Pick<Group, "id" | "isTenant" | "claimedAt" | "claimedLater">;

/** When a Group claimed a machine: an index of the store. */
function claimOf({ claimedAt, claimedLater }: Claimant, labels: Labels): number {
  let claim = claimedAt;
  for (const { at, label, values } of claimedLater) {
    const value = labels.get(label);
    if (at > claim && value !== undefined && values.includes(value)) claim = at;
  }
  return claim;
}

/** True for Groups of equal priority and counts that ask for the same keys by the same operators, whatever the values. */
export function isAlike(group: Group, other: Group): boolean {
  return group.priority === other.priority && isSameShape(group, other);
}

/** True for selectors of the same keys and operators, whatever their values. */
function isSameShape(group: Group, other: Group): boolean {
  if (group.selectorText === other.selectorText) return true;
  if (group.requirementCount !== other.requirementCount) return false;
  const [expressions, others] = [group.expressions, other.expressions];
  if (expressions.length !== others.length) return false;
  if (!Object.keys(group.selector).every((label) => Object.hasOwn(other.selector, label))) return false;
  // Both are sorted by key, then by operator.
  return expressions.every(({ key, operator }, at) => key === others[at]?.key && operator === others[at]?.operator);
}

/** Equal for Groups whose machines are answered alike, byte for byte. */
export function outcomeText({ profileId, barrier, isOutdated, args, metadata }: Group): string {
  return JSON.stringify([profileId, barrier, isOutdated, args, metadata]);
}

/** As `outcomeText`, for two. */
export function isSameOutcome(group: Group, other: Group): boolean {
  return (
    group.profileId === other.profileId &&
    group.barrier === other.barrier &&
    group.isOutdated === other.isOutdated &&
    isSameJson(group.args, other.args) &&
    isSameJson(group.metadata, other.metadata)
  );
}

// Templates see members in their order.
function isSameJson(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

function isSameNamespace(group: Pick<Group, "id">, other: Pick<Group, "id">): boolean {
  return namespaceOf(group) === namespaceOf(other);
}

function namespaceOf({ id }: Pick<Group, "id">): string {
  return id.slice(0, id.indexOf("/"));
}
