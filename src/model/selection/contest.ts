/**
 * Decides which of the Groups that match a machine gets the machine. All functions here are pure.
 *
 * Without an admin namespace:
 *
 *   Group                  Group                               winner   decided by
 *   a/x {mac=m1}           b/x {mac=m1,role=web}               b/x      the order of `group.ts`
 *   a/x {mac=m1}           a/y {mac=m1} with equal outcome     a/x      the order of `group.ts`
 *   a/x {mac=m1}           a/y {mac=m1} with another Profile   none     a/x and a/y tie
 *   a/x {mac=m1} claim 5   b/x {mac=m1} claim 7                a/x      the earlier claim
 *   a/x {mac=m1} claim 5   b/x {mac=m1} claim 5                none     a/x and b/x tie
 *
 * With an admin namespace, the table above applies inside each namespace. The table below applies between the winners
 * of the namespaces: the admin namespace infra, and the tenants a and b.
 *
 *   Group                      Group                           winner   decided by
 *   a/x {mac=m1} claim 5       b/x {mac=m1,role=web} claim 7   a/x      the earlier claim: each names the machine
 *   a/x {role=web}             b/x {os=old,role=web}           b/x      `compareBroad`
 *   a/x {role=web} claim 5     b/x {role=web} claim 7          a/x      the earlier claim
 *   a/x {mac=m1}               b/x {os=old,role=web}           b/x      `compareStrength`
 *   infra/x {mac=m1} claim 7   a/x {mac=m1} claim 5            infra/x  `compareStrength`
 */

import { compareBytes } from "../../lib/order.ts";
import { identityLabels, type Labels, variantsOf } from "../labels/labels.ts";
import { compareCounts, compareGroups, compareRanks, type Group, type LaterClaim, matches } from "../objects/group.ts";
import { traitsOf } from "../objects/tenant-rank.ts";
import { namesMachine, namesValueOf } from "./specificity.ts";

export interface Contest<Entry extends Group> {
  /** Undefined if no Group matches. */
  readonly winner: Entry | undefined;
  /** The Groups that tie with `winner`. If there are any, no Group gets the machine. */
  readonly rivals: readonly Entry[];
}

/** @param matching the Groups that match the machine with these labels. */
export function settle<Entry extends Group>(matching: Iterable<Entry>, labels: Labels): Contest<Entry> {
  const all = [...matching];
  return all.some(({ isTenant }) => isTenant) ? settleTenants(all, labels) : settleByOrder(all, labels);
}

function settleByOrder<Entry extends Group>(matching: readonly Entry[], labels: Labels): Contest<Entry> {
  let left = matching.toSorted(compareGroups);
  for (;;) {
    const [first] = left;
    if (first === undefined) return { winner: undefined, rivals: [] };
    const alike = new Set(left.filter((other) => isAlike(first, other)));
    const holders = holdersOf(alike, labels);
    if (holders.has(first)) return { winner: first, rivals: [...holders].filter((other) => isRival(first, other)) };
    // Drops the alike Groups with a later claim, such as `first`.
    left = left.filter((each) => !alike.has(each) || holders.has(each));
  }
}

function settleTenants<Entry extends Group>(matching: readonly Entry[], labels: Labels): Contest<Entry> {
  const sorted = matching.toSorted(compareGroups);
  const own = [...Map.groupBy(sorted, namespaceOf).values()].map((groups) => settleByOrder(groups, labels));
  const [named, broad] = [own.filter(isOfNamed), own.filter((each) => isOfTenant(each) && !isOfNamed(each))];
  const byClaim = (a: Group, b: Group) => claimOf(a, labels) - claimOf(b, labels);
  const firstNamed = firstsOf(named, byClaim).toSorted(between(compareBroad));
  const firstBroad = firstsOf(broad, (a, b) => compareBroad(a, b) || byClaim(a, b));
  const admins = own.filter((each) => !isOfTenant(each));
  const [first, ...others] = stronger(stronger(firstNamed, firstBroad), admins);
  if (first === undefined) return { winner: undefined, rivals: [] };
  return {
    winner: first.winner,
    rivals: [...first.rivals, ...others.flatMap(({ winner, rivals }) => (winner ? [winner, ...rivals] : []))],
  };
}

type Contests<Entry extends Group> = readonly Contest<Entry>[];

/** Returns `contests` or `others`: the list with the stronger winners (`compareStrength`). */
function stronger<Entry extends Group>(contests: Contests<Entry>, others: Contests<Entry>): Contests<Entry> {
  const [[first], [other]] = [contests, others];
  if (first === undefined || other === undefined) return first === undefined ? others : contests;
  return between(compareStrength)(first, other) < 0 ? contests : others;
}

type Compare = (a: Group, b: Group) => number;

function between(compare: Compare): (a: Contest<Group>, b: Contest<Group>) => number {
  return ({ winner: a }, { winner: b }) => (a && b ? compare(a, b) : 0);
}

/** Returns the contest whose winner `compare` sorts first, and every contest with an equal winner. */
function firstsOf<Entry extends Group>(
  contests: readonly Contest<Entry>[],
  compare: Compare,
): readonly Contest<Entry>[] {
  const [first, ...others] = contests.toSorted(between(compare));
  return first === undefined ? [] : [first, ...others.filter((other) => between(compare)(first, other) === 0)];
}

function isOfTenant({ winner }: Contest<Group>): boolean {
  return winner?.isTenant === true;
}

function isOfNamed(contest: Contest<Group>): boolean {
  return isOfTenant(contest) && namesMachine(contest.winner);
}

/** True if `other` may win over `group` or tie with `group`, even when `compareGroups` sorts `group` first. */
export function isRival(group: Group, other: Group): boolean {
  if (group === other) return false;
  if (isSameNamespace(group, other)) return isAlike(group, other) && !isSameOutcome(group, other);
  if (!group.isTenant) return !other.isTenant && isAlike(group, other);
  if (!other.isTenant) return other.rankCount >= group.rankCount && compareRanks(group, other) <= 0;
  return other.rankCount >= group.rankCount || (namesMachine(group) && namesMachine(other));
}

/** True if `group` wins over `other` for a machine with these labels; false for alike Groups of one namespace. */
export function outranks(group: Group, other: Group, labels: Labels): boolean {
  if (isSameNamespace(group, other)) return !isAlike(group, other) && compareRanks(group, other) < 0;
  const order = compareAcross(group, other);
  return order === 0 ? claimOf(group, labels) < claimOf(other, labels) : order < 0;
}

/**
 * Why a Group does not get a machine that a Group of another namespace wins:
 *
 * - `rank`: `compareAcross` sorts the winner first.
 * - `claim`: `compareAcross` returns 0, and the winner has the earlier claim.
 * - `third`: the Group lost to a third Group, or it ties with the winner.
 */
export type Advantage = "rank" | "claim" | "third";

export function advantageOf(winner: Group, group: Group, labels: Labels): Advantage {
  const order = compareAcross(winner, group);
  if (order < 0) return "rank";
  return order === 0 && claimOf(winner, labels) < claimOf(group, labels) ? "claim" : "third";
}

/** True if the removed Group `gone` may have kept a machine from `group` by a tie, as a namesake or by `isEven`. */
export function mayHaveBarred(gone: Group, group: Group, labels: Labels): boolean {
  const isOwn = isSameNamespace(gone, group);
  if (!isOwn && (gone.isTenant || isAlike(gone, group)))
    return compareAcross(gone, group) === 0 && claimOf(gone, labels) === claimOf(group, labels);
  return isAlike(gone, group) || areNamesakes(gone, group) || isEven(gone, group);
}

/** True for Groups of equal priority that name machines without a common label: {mac=m1} and {serial=s1}. */
function areNamesakes(group: Group, other: Group): boolean {
  if (group.priority !== other.priority || !namesMachine(group) || !namesMachine(other)) return false;
  return identityLabels.every((label) => !namesValueOf(group, label) || !namesValueOf(other, label));
}

/**
 * True for namesakes on a machine with these labels. If it has several values of a label, so are Groups of equal
 * priority that name it by different values: {mac=m1} and {mac In (m2,m3)}.
 */
export function areNamesakesFor(group: Group, other: Group, labels: Labels): boolean {
  if (areNamesakes(group, other)) return true;
  if (labels.further === undefined || group === other || group.priority !== other.priority) return false;
  if (!namesMachine(group) || !namesMachine(other)) return false;
  return !variantsOf(labels).some((variant) => matches(group, variant) && matches(other, variant));
}

/** True if the selector texts decide, but the tombstone of `gone` may lack values of its expressions. */
function isEven(gone: Group, group: Group): boolean {
  return gone.expressions.length > 0 && compareCounts(gone, group) === 0;
}

/** Sorts the winning one of two Groups of different namespaces to the front; zero if their claims decide. */
function compareAcross(group: Group, other: Group): number {
  if (!group.isTenant && !other.isTenant) return isAlike(group, other) ? 0 : compareRanks(group, other);
  if (!group.isTenant || !other.isTenant) return compareStrength(group, other);
  const named = [group, other].filter(namesMachine).length;
  if (named === 1) return compareStrength(group, other);
  return named === 0 ? compareBroad(group, other) : 0;
}

/** Returns the alike Groups of the namespace with the earliest claim, or of all namespaces with this claim. */
function holdersOf<Entry extends Group>(alike: ReadonlySet<Entry>, labels: Labels): ReadonlySet<Entry> {
  const claims = new Map<string, number>();
  for (const group of alike) {
    const namespace = namespaceOf(group);
    claims.set(namespace, Math.min(claims.get(namespace) ?? Number.POSITIVE_INFINITY, claimOf(group, labels)));
  }
  if (claims.size === 1) return alike;
  const first = [...claims.values()].reduce((least, claim) => Math.min(least, claim));
  return new Set([...alike].filter((group) => claims.get(namespaceOf(group)) === first));
}

/**
 * Returns the store's index at which a Group claimed a machine; 0 if davit recorded no claim for the Group. A name that
 * the selector got later makes no later claim if an older name of the machine stays: the selector became narrower.
 */
function claimOf(group: Group, labels: Labels): number {
  const { claimedAt, claimedLater } = group;
  if (claimedLater.length === 0) return claimedAt;
  if (labels.further === undefined) return claimOn(group, labels);
  const matching = variantsOf(labels).filter((variant) => matches(group, variant));
  return matching.length === 0 ? claimOn(group, labels) : Math.min(...matching.map((each) => claimOn(group, each)));
}

/** As `claimOf`, for a machine with one value of each label. */
function claimOn(group: Group, labels: Labels): number {
  const { claimedAt, claimedLater } = group;
  const counts = ({ label, values }: LaterClaim) => values.includes(labels.get(label) ?? "");
  const [names, others] = [claimedLater.filter(({ isName }) => isName), claimedLater.filter(({ isName }) => !isName)];
  const since = latest(others.filter(counts), claimedAt);
  const identities = identityLabels.filter((label) => namesValueOf(group, label));
  const used = [...Object.keys(group.selector), ...group.expressions.map(({ key }) => key)];
  const naming = identities.length > 0 ? identities : used;
  const byName = naming.map((name) =>
    latest(
      names.filter((claim) => claim.label === name && counts(claim)),
      since,
    ),
  );
  return byName.reduce((first, claim) => Math.min(first, claim), byName[0] ?? since);
}

function latest(claims: readonly LaterClaim[], at: number): number {
  return claims.reduce((last, claim) => Math.max(last, claim.at), at);
}

/**
 * Sorts the winning Group to the front. At least one of the Groups is a tenant's, here a/x.
 *
 *   1. higher priority                             infra/x {role=web} of priority 5 before a/x {mac=m1,role=web}
 *   2. higher `rankCount`                          a/x {mac=m1,role=web} before infra/x {mac=m1}
 *   3. fewer `expressions` in `traitsOf`           infra/x {os=old} before a/x {role In (web)}
 *   4. the admin's Group if `keys` are equal       infra/x {role=web} before a/x {role=web}
 *   5. the admin's Group if each names a machine   infra/x {mac=m1} before a/x {serial=s1}
 *   6. later selector text, by bytes               a/x {role=web} before infra/x {mac=m1}
 */
function compareStrength(a: Group, b: Group): number {
  const [own, other] = [traitsOf(a), traitsOf(b)];
  const strength = b.priority - a.priority || b.rankCount - a.rankCount || own.expressions - other.expressions;
  if (strength !== 0) return strength;
  const isEven = own.keys === other.keys || (namesMachine(a) && namesMachine(b));
  return isEven ? Number(a.isTenant) - Number(b.isTenant) : compareBytes(b.selectorText, a.selectorText);
}

/** Sorts the winning one of two tenants' Groups to the front; zero if `traitsOf` gives them equal `keys`. */
function compareBroad(a: Group, b: Group): number {
  const [own, other] = [traitsOf(a), traitsOf(b)];
  return b.rankCount - a.rankCount || own.patterns - other.patterns || compareBytes(other.keys, own.keys);
}

/** True for Groups of equal priority, keys and operators, such as {mac In (m1,m2)} and {mac In (m1,m3)}. */
export function isAlike(group: Group, other: Group): boolean {
  return group.priority === other.priority && isSameShape(group, other);
}

function isSameShape(group: Group, other: Group): boolean {
  if (group.selectorText === other.selectorText) return true;
  if (group.requirementCount !== other.requirementCount) return false;
  const [expressions, others] = [group.expressions, other.expressions];
  if (expressions.length !== others.length) return false;
  if (!Object.keys(group.selector).every((label) => Object.hasOwn(other.selector, label))) return false;
  // `expressions` is sorted by key, then by operator.
  return expressions.every(({ key, operator }, at) => key === others[at]?.key && operator === others[at]?.operator);
}

/** Returns a text that is equal for Groups whose machines get the same answers, byte for byte. */
export function outcomeText({ profileId, barrier, isOutdated, args, metadata, permits, requiresTls }: Group): string {
  // Without the last two, the text is that of older versions of davit: tombstones have its hash.
  const later = [...(permits ? [permits] : []), ...(requiresTls ? ["requireTls"] : [])];
  return JSON.stringify([profileId, barrier, isOutdated, args, metadata, ...later]);
}

/** True for Groups with the same `outcomeText`. */
export function isSameOutcome(group: Group, other: Group): boolean {
  return (
    group.profileId === other.profileId &&
    group.barrier === other.barrier &&
    group.isOutdated === other.isOutdated &&
    group.requiresTls === other.requiresTls &&
    isSameJson(group.args, other.args) &&
    isSameJson(group.metadata, other.metadata) &&
    isSameJson(group.permits, other.permits)
  );
}

// Objects with the same members in another order are not the same: a template can print members in their order.
function isSameJson(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

export function isSameNamespace(group: Pick<Group, "id">, other: Pick<Group, "id">): boolean {
  return namespaceOf(group) === namespaceOf(other);
}

function namespaceOf({ id }: Pick<Group, "id">): string {
  return id.slice(0, id.indexOf("/"));
}
