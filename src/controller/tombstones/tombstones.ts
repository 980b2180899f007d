/**
 * Plans tombstones. The step that removes a Group, or changes its selector, also writes tombstones. If the selector
 * names values of identity labels, it writes one for each of these values. If the selector names no machine, it writes
 * one for the whole selector. Until a tombstone ends, machines that the old selector matches wait, instead of getting a
 * Group that ranks behind the removed one. So while thousands of Groups are removed, no named machine gets a catch-all,
 * or another Group that would install the machine again. `boot/core/known-tombstones.ts` has the exact rules.
 *
 * If another Group outranks the removed one on all of its machines, no tombstone is written. No machine had the removed
 * Group, so no machine of another Group should wait for it.
 *
 * Any change of a selector counts as the removal of the old selector. A narrower selector may no longer match all of
 * the old machines. A wider selector may belong to a new Group of the same name, which is for other machines. If only a
 * list of values changed, only the removed values count.
 *
 * A Group that returns unchanged removes its own tombstones. A tombstone of several Groups records all of their
 * selectors, and only ends by itself. But a Group that newly names a machine, or gets a new grant, says what this
 * machine may do now. If the Group or the machine's Machine has a grant, the Group removes the machine's tombstone.
 * Pure.
 */

import { isDeepEqual } from "../../lib/deep-equal.ts";
import {
  decodeTombstone,
  encodeDocument,
  type GoneSelector,
  type GroupDocument,
  profileTombstonePath,
  selectorPlace,
  type TombstoneDocument,
  tombstonePath,
  tombstoneSelectors,
} from "../../model/objects/documents.ts";
import { type Group, type GroupSpec, type GroupState, selectorText, toGroup } from "../../model/objects/group.ts";
import type { ObjectName } from "../../model/objects/source.ts";
import { outcomeText } from "../../model/selection/contest.ts";
import type { DocumentWrite } from "../core/documents.ts";
import { claimOn } from "../ranking/claims.ts";
import { goneSelector, type IdentityClaim, identityClaimsOf } from "./identity-claims.ts";

/** A step's change to one Group. `before` is undefined for a new Group, `after` for a removed one. */
export interface GroupChange {
  /** `namespace/name`. */
  readonly id: string;
  readonly before: GroupSpec | undefined;
  readonly after: GroupSpec | undefined;
  /** The state of the Group before the step. */
  readonly state?: GroupState;
}

/** The change of a Group from its stored document to its new one. */
export function groupChangeOf(
  { namespace, name }: Pick<ObjectName, "namespace" | "name">,
  before: GroupDocument | undefined,
  after: GroupDocument | undefined,
): GroupChange {
  return { id: `${namespace}/${name}`, before: before?.spec, after: after?.spec, ...(before && { state: before }) };
}

/** A step's change to one Profile: whether it existed, and whether it exists now. */
interface ProfileChange {
  readonly name: Pick<ObjectName, "namespace" | "name">;
  readonly before: boolean;
  readonly after: boolean;
}

/** A write to a tombstone, with the namespace of the tombstone's object. */
export interface TombstoneWrite extends DocumentWrite {
  readonly namespace: string;
}

export interface TombstoneOptions {
  readonly sha256: (text: string) => string;
  /** True when another Group selects all machines of a removed Group and outranks it. */
  readonly isTaken: (gone: Group) => boolean;
  /** True if a Machine with this label's value has a grant. Absent where there are no Machines. */
  readonly hasGrant?: (label: string, value: string) => boolean;
  /** The text of the tombstone that is stored at a path. */
  readonly textAt: (path: string) => string | undefined;
  /** How long a tombstone lasts: whole seconds, at least 1. */
  readonly ttlSeconds: number;
  /** Undefined if there is no admin namespace: then all namespaces share their tombstones. */
  readonly adminNamespace?: string | undefined;
}

type Burial = Pick<TombstoneOptions, "sha256" | "adminNamespace">;

interface Claimant extends Burial {
  /** `namespace/name`. */
  readonly id: string;
  readonly spec: GroupSpec;
  /** The state of a Group before it is removed. Absent for a Group that selects the machines now. */
  readonly removed?: GroupState;
}

/**
 * The place of a tombstone: a label's value by which a Group selected machines, or now selects them. For a Group that
 * names no machine, it is the whole selector.
 */
interface Grave {
  /** The Group's id; `spec` is the Group's spec. */
  readonly id: string;
  readonly spec: GroupSpec;
  readonly namespace: string;
  readonly label: string;
  readonly value: string;
  readonly path: string;
  /** Without the `outcome` of its rank if the Group selects the value now: only removed Groups need it. */
  readonly gone: GoneSelector;
  /** The tombstone for this place, if it is for this Group alone. */
  readonly stone: TombstoneDocument;
}

// How many selectors of one namespace a tombstone may have. Each request of a machine is compared with all of them, and
// each change of a Group's selector adds one.
const mostSelectors = 16;

/**
 * The writes to a Profile's tombstone. `kubectl replace --force`, for example, deletes a Profile and creates it again.
 * Without a tombstone, its machines would get a 404 in between and go on to their next boot device.
 */
export function profileTombstoneWrites(
  { name: { namespace, name }, before, after }: ProfileChange,
  { textAt, ttlSeconds }: Pick<TombstoneOptions, "textAt" | "ttlSeconds">,
): readonly TombstoneWrite[] {
  const path = profileTombstonePath(namespace, name);
  if (after) return textAt(path) === undefined ? [] : [{ path, text: undefined, namespace }];
  if (!before) return [];
  return [{ path, text: encodeDocument({ goneProfile: `${namespace}/${name}` }), ttlSeconds, namespace }];
}

/** The tombstones that a step writes and removes. */
export function tombstoneWrites(
  groupChanges: readonly GroupChange[],
  options: TombstoneOptions,
): readonly TombstoneWrite[] {
  const graveyard = new Graveyard(options.textAt);
  const { left, taken } = gravesOf(groupChanges, options);
  for (const grave of left) if (!options.isTaken(groupOf(grave))) graveyard.bury(grave);
  for (const grave of taken) {
    if (isGranted(grave, options)) graveyard.release(grave);
    else graveyard.cancel(grave);
  }
  return graveyard.writes(options.ttlSeconds);
}

class Graveyard {
  readonly #textAt: TombstoneOptions["textAt"];
  /**
   * By path: the tombstone to write, or undefined to remove it. `namespace` is that of the last Group that changed the
   * tombstone.
   */
  readonly #stones = new Map<string, { readonly stone: TombstoneDocument | undefined; readonly namespace: string }>();

  constructor(textAt: TombstoneOptions["textAt"]) {
    this.#textAt = textAt;
  }

  /**
   * Adds a removed Group to the tombstone of its place. A tombstone of several Groups names none of them, and records
   * all selectors.
   */
  bury(grave: Grave): void {
    const { path, stone, namespace } = grave;
    const found = this.#at(path) ?? stone;
    const written = isSame(found, stone) ? stone : stoneOf(withSelector(found, grave));
    this.#stones.set(path, { stone: written, namespace });
  }

  /** Removes the tombstone of a Group that returned, if the tombstone is for this Group alone. */
  cancel({ path, stone, namespace }: Grave): void {
    const isPlanned = this.#stones.has(path);
    if (!isPlanned && isSame(this.#at(path) ?? {}, stone)) this.#stones.set(path, { stone: undefined, namespace });
  }

  /**
   * Removes the tombstone of a machine that a Group newly names, unless a removed Group had a higher priority or was in
   * another namespace.
   */
  release({ path, label, value, spec, namespace }: Grave): void {
    const stone = this.#at(path);
    const isOver = ({ rank }: GoneSelector) => rank?.namespace === namespace && rank.priority <= spec.priority;
    if (stone !== undefined && tombstoneSelectors(stone, label, value).every(isOver))
      this.#stones.set(path, { stone: undefined, namespace });
  }

  writes(ttlSeconds: number): readonly TombstoneWrite[] {
    return [...this.#stones].flatMap(([path, { stone, namespace }]): readonly TombstoneWrite[] => {
      if (stone !== undefined) return [{ path, text: encodeDocument(stone), ttlSeconds, namespace }];
      // The store refuses a step that removes what it does not have, such as a tombstone of this step.
      return this.#textAt(path) === undefined ? [] : [{ path, text: undefined, namespace }];
    });
  }

  #at(path: string): TombstoneDocument | undefined {
    const planned = this.#stones.get(path);
    if (planned !== undefined) return planned.stone;
    const text = this.#textAt(path);
    return text === undefined ? undefined : (decodeTombstone(text) ?? {});
  }
}

/** The claims, without the values that the other claims have, too. */
function without(claims: readonly IdentityClaim[], others: readonly IdentityClaim[]): readonly IdentityClaim[] {
  return claims.map((claim) => {
    const other = others.find(({ label, restText }) => label === claim.label && restText === claim.restText);
    if (other === undefined) return claim;
    return { ...claim, values: new Set([...claim.values].filter((value) => !other.values.has(value))) };
  });
}

/** The values that Groups no longer select by (`left`), and those that they newly select by (`taken`). */
function gravesOf(groupChanges: readonly GroupChange[], { sha256, adminNamespace }: Burial) {
  const burial = { sha256, adminNamespace };
  const [left, taken]: [Grave[], Grave[]] = [[], []];
  for (const { id, before, after, state = {} } of groupChanges) {
    const [old, now] = [before ? identityClaimsOf(before) : [], after ? identityClaimsOf(after) : []];
    if (before !== undefined)
      left.push(...gravesIn(without(old, now), { id, spec: before, removed: state, ...burial }));
    if (after === undefined) continue;
    const isNewGrant = !isDeepEqual(after.install, before?.install);
    taken.push(...gravesIn(isNewGrant ? now : without(now, old), { id, spec: after, ...burial }));
  }
  return { left, taken };
}

/** True if a Group names its machine, and this machine has a grant of its own or of this Group. */
function isGranted({ label, value, spec }: Grave, { hasGrant }: Pick<TombstoneOptions, "hasGrant">): boolean {
  return label !== selectorPlace && (spec.install !== undefined || hasGrant?.(label, value) === true);
}

function gravesIn(
  claims: readonly IdentityClaim[],
  { id, spec, sha256, adminNamespace, removed }: Claimant,
): readonly Grave[] {
  if (claims.every(({ values }) => values.size === 0)) return [];
  const namespace = id.slice(0, id.indexOf("/"));
  const tenant = adminNamespace === undefined || namespace === adminNamespace ? undefined : namespace;
  // A large step has 100,000 new Groups, and the hash takes longer than the rest of a grave.
  const outcome = removed && { outcome: sha256(outcomeText(lasting(id, spec, removed))) };
  return claims.flatMap((claim) =>
    [...claim.values].map((value): Grave => {
      const { label } = claim;
      const rank = { namespace, priority: spec.priority, ...claimOn(removed ?? {}, label, value), ...outcome };
      const gone = { ...goneSelector(claim, value), rank };
      const selector = selectorText(gone.labels, gone.expressions);
      const path = tombstonePath(label, label === selectorPlace ? sha256(value) : value, tenant);
      return { id, spec, namespace, label, value, path, gone, stone: { group: id, selector, ...stoneOf([gone]) } };
    }),
  );
}

/**
 * The claim of a Group that was just removed, as the tombstones of its machines record it. The Group had the same
 * machines as the new one, and was in the same namespace. If a tombstone records several such claims, the oldest one is
 * used. Of the claims to several machines, the latest one is returned. Undefined if a machine has no such tombstone.
 */
export function claimLeft(
  id: string,
  spec: GroupSpec,
  { textAt, ...burial }: Burial & Pick<TombstoneOptions, "textAt">,
): number | undefined {
  let latest = 0;
  for (const { path, label, value, gone, namespace } of gravesIn(identityClaimsOf(spec), { id, spec, ...burial })) {
    const stone = decodeTombstone(textAt(path) ?? "");
    const selectors = stone === undefined ? [] : tombstoneSelectors(stone, label, value);
    const own = selectors.filter((each) => each.rank?.namespace === namespace && isSameSelector(each, gone));
    if (own.length === 0) return undefined;
    latest = Math.max(latest, Math.min(...own.map(({ rank }) => rank?.claimedAt ?? 0)));
  }
  return latest;
}

function isSameSelector(a: GoneSelector, b: GoneSelector): boolean {
  return selectorText(a.labels, a.expressions) === selectorText(b.labels, b.expressions);
}

/** The Group, without reasons to wait that may end before the Group returns. A tie is such a reason. */
function lasting(id: string, spec: GroupSpec, { refused, outdated }: GroupState): Group {
  const [namespace = "", name = ""] = id.split("/");
  return toGroup(namespace, name, spec, { ...(refused && { refused }), ...(outdated && { outdated }) });
}

/** The removed Group, with only the part of its selector that concerns the tombstone's machines. */
function groupOf({ id, spec, gone: { labels, expressions, rank } }: Grave): Group {
  const [namespace = "", name = ""] = id.split("/");
  return toGroup(namespace, name, { ...spec, selector: labels, expressions }, rank);
}

function stoneOf(selectors: readonly GoneSelector[]): TombstoneDocument {
  const hasExpressions = selectors.some(({ expressions }) => expressions.length > 0);
  return {
    labels: selectors.map(({ labels }) => labels),
    ...(hasExpressions && { expressions: selectors.map(({ expressions }) => expressions) }),
    ranks: selectors.map(({ rank }) => rank ?? null),
  };
}

/**
 * The selectors of a tombstone and of one more Group, which is last. Beyond the limit, the oldest selectors of the
 * Group's namespace are merged.
 */
function withSelector(stone: TombstoneDocument, { label, value, gone }: Grave): readonly GoneSelector[] {
  const added = JSON.stringify(gone);
  const known = tombstoneSelectors(stone, label, value).filter((other) => JSON.stringify(other) !== added);
  const isOwn = ({ rank }: GoneSelector) => rank?.namespace === gone.rank?.namespace;
  const others = known.filter((other) => !isOwn(other));
  const own = [...known.filter(isOwn), gone];
  if (own.length <= mostSelectors) return [...others, ...own];
  const old = own.slice(0, own.length - mostSelectors + 1);
  return [...others, merged(old, label, value), ...own.slice(1 - mostSelectors)];
}

/**
 * Merges old selectors into one that asks only for the tombstone's label and value. It has their highest priority and
 * their first claim, but no outcome.
 */
function merged(old: readonly GoneSelector[], label: string, value: string): GoneSelector {
  const ranks = old.flatMap(({ rank }) => rank ?? []);
  const [highest] = ranks.toSorted((a, b) => b.priority - a.priority);
  const claims = ranks.flatMap(({ claimedAt }) => claimedAt ?? []);
  const [first] = old;
  const whole =
    label === selectorPlace && first !== undefined ? first : { labels: { [label]: value }, expressions: [] };
  const { labels, expressions } = whole;
  if (highest === undefined) return { labels, expressions };
  const { outcome: _, ...rank } = highest;
  const claim = claims.length > 0 && { claimedAt: Math.min(...claims) };
  return { labels, expressions, rank: { ...rank, ...claim } };
}

function isSame(a: TombstoneDocument, b: TombstoneDocument): boolean {
  return a.group === b.group && a.selector === b.selector;
}
