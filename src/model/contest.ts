/**
 * Decides which of the Groups that match a machine gets the machine.
 *
 * The order of `group.ts` decides first. Groups tie if they have the same priority, the same keys and the same
 * operators, but different outcomes. Neither the selectors' values nor the Groups' names decide a tie:
 *
 * - In one namespace: no Group wins.
 * - In several namespaces: the namespace with the first claim to the machine wins. If the first claims are equal, no
 *   Group wins.
 *
 * If there is an admin namespace, all other namespaces are tenants. The order then decides only inside each namespace.
 * Between the Groups that won in their namespaces, these rules decide:
 *
 * - If both Groups are tenants' and both name the machine by an identity label, the first claim wins.
 * - If both Groups are tenants' and neither names the machine, `compareBroad` decides, by the rank of `tenant-rank.ts`
 *   first. If `compareBroad` finds the two equal, the first claim wins.
 * - If both Groups are tenants' and only one names the machine, `compareStrength` decides, by rank first.
 * - If one Group is an admin's and the other a tenant's, `compareStrength` decides, by priority and then by rank.
 *
 * All functions here are pure.
 */

import { compareBytes } from "../lib/order.ts";
import { compareCounts, compareGroups, compareRanks, type Group } from "./group.ts";
import { identityLabels, type Labels } from "./labels.ts";
import { namesMachine, namesValueOf } from "./specificity.ts";
import { traitsOf } from "./tenant-rank.ts";

/** The result of a contest for a machine. */
export interface Contest<Entry extends Group> {
  /** Undefined if no Group matches. */
  readonly winner: Entry | undefined;
  /** The Groups that tie with the winner. If there are any, no Group gets the machine, not even the winner. */
  readonly rivals: readonly Entry[];
}

/** Decides between the Groups that match a machine. @param labels the machine's labels. */
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
    // The Groups that lost this tie by their claims drop out. The order decides between the Groups that are left.
    left = left.filter((each) => !alike.has(each) || holders.has(each));
  }
}

/** Decides inside each namespace by the order of `group.ts`, then between the winners of the namespaces. */
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

/** Compares the first winners of two lists by `compareStrength`, and returns the list with the stronger one. */
function stronger<Entry extends Group>(contests: Contests<Entry>, others: Contests<Entry>): Contests<Entry> {
  const [[first], [other]] = [contests, others];
  if (first === undefined || other === undefined) return first === undefined ? others : contests;
  return between(compareStrength)(first, other) < 0 ? contests : others;
}

type Compare = (a: Group, b: Group) => number;

function between(compare: Compare): (a: Contest<Group>, b: Contest<Group>) => number {
  return ({ winner: a }, { winner: b }) => (a && b ? compare(a, b) : 0);
}

/** Returns the contests whose winners come first by this comparison: one contest, or several with equal winners. */
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

/**
 * True when `other` may keep machines from `group`, even if `compareGroups` sorts `group` first. On a machine that
 * matches both Groups, `other` may win, or the two may tie.
 */
export function isRival(group: Group, other: Group): boolean {
  if (group === other) return false;
  if (isSameNamespace(group, other)) return isAlike(group, other) && !isSameOutcome(group, other);
  if (!group.isTenant) return !other.isTenant && isAlike(group, other);
  if (!other.isTenant) return other.rankCount >= group.rankCount && compareRanks(group, other) <= 0;
  return other.rankCount >= group.rankCount || (namesMachine(group) && namesMachine(other));
}

/**
 * True when `group` wins over `other` on a machine that both select. If the two are alike and in one namespace, neither
 * wins. If they are equal in rank and in different namespaces, the first claim wins.
 */
export function outranks(group: Group, other: Group, labels: Labels): boolean {
  if (isSameNamespace(group, other)) return !isAlike(group, other) && compareRanks(group, other) < 0;
  const order = compareAcross(group, other);
  return order === 0 ? claimOf(group, labels) < claimOf(other, labels) : order < 0;
}

/**
 * Why the winner of a machine comes before another Group: by its rank, or by its earlier claim. `third` means that
 * neither puts the winner first. Then the Group lost to a third Group, or the two tie.
 */
export type Advantage = "rank" | "claim" | "third";

/** Returns why `winner` comes before `group`. Both match the machine, and their namespaces differ. */
export function advantageOf(winner: Group, group: Group, labels: Labels): Advantage {
  const order = compareAcross(winner, group);
  if (order < 0) return "rank";
  return order === 0 && claimOf(winner, labels) < claimOf(group, labels) ? "claim" : "third";
}

/**
 * True when the removed Group `gone` may have kept `group` from a machine that both select, although `gone` did not
 * outrank `group`. There are three causes. The two tied. Or they named the machine by different identity labels. Or
 * davit no longer knows which one ranked first.
 */
export function mayHaveBarred(gone: Group, group: Group, labels: Labels): boolean {
  const isOwn = isSameNamespace(gone, group);
  if (!isOwn && (gone.isTenant || isAlike(gone, group)))
    return compareAcross(gone, group) === 0 && claimOf(gone, labels) === claimOf(group, labels);
  return isAlike(gone, group) || areNamesakes(gone, group) || isEven(gone, group);
}

/** True for two Groups of equal priority if both name machines, but by different identity labels. */
export function areNamesakes(group: Group, other: Group): boolean {
  if (group.priority !== other.priority || !namesMachine(group) || !namesMachine(other)) return false;
  return identityLabels.every((label) => !namesValueOf(group, label) || !namesValueOf(other, label));
}

/**
 * True if only the texts of the two selectors decided the order, and davit may no longer know the text of the removed
 * Group's selector. A tombstone may have fewer of an expression's values than the selector had.
 */
function isEven(gone: Group, group: Group): boolean {
  return gone.expressions.length > 0 && compareCounts(gone, group) === 0;
}

/**
 * Compares two Groups of different namespaces. A sort by this comparison puts the stronger Group first. The result is
 * zero if the Groups' claims decide.
 */
function compareAcross(group: Group, other: Group): number {
  if (!group.isTenant && !other.isTenant) return isAlike(group, other) ? 0 : compareRanks(group, other);
  if (!group.isTenant || !other.isTenant) return compareStrength(group, other);
  const named = [group, other].filter(namesMachine).length;
  if (named === 1) return compareStrength(group, other);
  return named === 0 ? compareBroad(group, other) : 0;
}

/**
 * Returns the alike Groups of the namespace with the first claim to the machine. If several namespaces share the first
 * claim, this function returns the alike Groups of all these namespaces.
 */
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

/** Returns the store's index at which a Group claimed a machine; 0 if davit recorded no claim for the Group. */
function claimOf({ claimedAt, claimedLater }: Group, labels: Labels): number {
  let claim = claimedAt;
  for (const { at, label, values } of claimedLater) {
    const value = labels.get(label);
    if (at > claim && value !== undefined && values.includes(value)) claim = at;
  }
  return claim;
}

/**
 * Compares a tenant's Group with an admin's Group, or with another tenant's Group. A sort by this comparison puts the
 * stronger Group first. The first of these rules by which the two Groups differ decides:
 *
 *   1. higher priority
 *   2. higher `rankCount`
 *   3. fewer expressions that count (`traitsOf`)
 *   4. the admin's Group, if both Groups have the same keys or both name the machine by an identity label
 *   5. later selector text, by bytes
 */
function compareStrength(a: Group, b: Group): number {
  const [own, other] = [traitsOf(a), traitsOf(b)];
  const strength = b.priority - a.priority || b.rankCount - a.rankCount || own.expressions - other.expressions;
  if (strength !== 0) return strength;
  const isEven = own.keys === other.keys || (namesMachine(a) && namesMachine(b));
  return isEven ? Number(a.isTenant) - Number(b.isTenant) : compareBytes(b.selectorText, a.selectorText);
}

/**
 * Compares two tenants' Groups. A sort by this comparison puts the stronger Group first. The result is zero if both
 * Groups name values (by `=` or `In`) of the same labels, and if both or neither have patterns that count.
 */
function compareBroad(a: Group, b: Group): number {
  const [own, other] = [traitsOf(a), traitsOf(b)];
  return b.rankCount - a.rankCount || own.patterns - other.patterns || compareBytes(other.keys, own.keys);
}

/** True for Groups with the same priority, the same keys and the same operators, whatever their values. */
export function isAlike(group: Group, other: Group): boolean {
  return group.priority === other.priority && isSameShape(group, other);
}

/** True for selectors with the same keys and operators, whatever their values. */
function isSameShape(group: Group, other: Group): boolean {
  if (group.selectorText === other.selectorText) return true;
  if (group.requirementCount !== other.requirementCount) return false;
  const [expressions, others] = [group.expressions, other.expressions];
  if (expressions.length !== others.length) return false;
  if (!Object.keys(group.selector).every((label) => Object.hasOwn(other.selector, label))) return false;
  // Both lists of expressions are sorted by key, then by operator.
  return expressions.every(({ key, operator }, at) => key === others[at]?.key && operator === others[at]?.operator);
}

/** Returns a text that is equal for Groups whose machines get the same answers, byte for byte. */
export function outcomeText({ profileId, barrier, isOutdated, args, metadata }: Group): string {
  return JSON.stringify([profileId, barrier, isOutdated, args, metadata]);
}

/** True for Groups with the same `outcomeText`. */
export function isSameOutcome(group: Group, other: Group): boolean {
  return (
    group.profileId === other.profileId &&
    group.barrier === other.barrier &&
    group.isOutdated === other.isOutdated &&
    isSameJson(group.args, other.args) &&
    isSameJson(group.metadata, other.metadata)
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
