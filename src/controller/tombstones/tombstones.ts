/**
 * Tombstones: a Group that is removed, or gets another selector, leaves some in the step that removes it: one for each value
 * of the identity labels that its selector names, else one for the selector. Until it ends, the boot service answers 503 to
 * a machine that the old selector matches and whose winner ranks behind the Group that left it (`boot/known-tombstones.ts`).
 * So however long a removal of thousands takes, no named machine gets a catch-all in between, or the Group that would
 * install it anew.
 *
 * If another Group outranks it for all of its machines, a Group leaves none: no machine misses it, and a Group without
 * effect must not make machines of others wait.
 *
 * Any other selector counts as gone, a narrower one as well: it may no longer match what the old one did. So does a
 * wider one: a Group by the name of another may have been meant for other machines. Of a list of values only those count
 * that are no longer in it. A Group that comes back as it was takes its own tombstones away; where several left the same
 * one, it tells all of their selectors, and only time takes it away. Pure.
 */

import { outcomeText } from "../../model/contest.ts";
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
} from "../../model/documents.ts";
import { type Group, type GroupSpec, type GroupState, selectorText, toGroup } from "../../model/group.ts";
import type { ObjectName } from "../../model/source.ts";
import type { DocumentWrite } from "../core/documents.ts";
import { claimOn } from "../ranking/claims.ts";
import { goneSelector, type IdentityClaim, identityClaimsOf } from "./identity-claims.ts";

/** What a step makes of one Group; undefined where there is none. */
export interface GroupChange {
  /** `namespace/name`. */
  readonly id: string;
  readonly before: GroupSpec | undefined;
  readonly after: GroupSpec | undefined;
  /** Of the one before. */
  readonly state?: GroupState;
}

/** @param before the document of the Group so far, as it is stored. */
export function groupChangeOf(
  { namespace, name }: Pick<ObjectName, "namespace" | "name">,
  before: GroupDocument | undefined,
  after: GroupDocument | undefined,
): GroupChange {
  return { id: `${namespace}/${name}`, before: before?.spec, after: after?.spec, ...(before && { state: before }) };
}

/** What a step makes of one Profile: whether there was one, and whether there is one now. */
export interface ProfileChange {
  readonly name: Pick<ObjectName, "namespace" | "name">;
  readonly before: boolean;
  readonly after: boolean;
}

/** Of the tombstone of an object in this namespace. */
export interface TombstoneWrite extends DocumentWrite {
  readonly namespace: string;
}

export interface TombstoneOptions {
  readonly sha256: (text: string) => string;
  /** True when another Group takes each machine of one that was removed, and outranks it. */
  readonly isTaken: (gone: Group) => boolean;
  /** The text of the tombstone that is stored at a path. */
  readonly textAt: (path: string) => string | undefined;
  /** How long a tombstone stays, whole seconds from 1 on. */
  readonly ttlSeconds: number;
  /** Undefined if no namespace ranks before the others: then they share their tombstones. */
  readonly adminNamespace?: string | undefined;
}

type Burial = Pick<TombstoneOptions, "sha256" | "adminNamespace">;

/** One value of a label by which a Group selected, or does now; or its selector, where that names no machine. */
interface Grave {
  /** Of the Group, as is the spec. */
  readonly id: string;
  readonly spec: GroupSpec;
  readonly namespace: string;
  readonly label: string;
  readonly value: string;
  readonly path: string;
  readonly gone: GoneSelector;
  /** What the Group leaves there. */
  readonly stone: TombstoneDocument;
}

// The limit for each namespace. Each request of the machine looks at all of them, and a Group that keeps changing
// leaves more and more.
const mostSelectors = 16;

/**
 * What a step writes of the tombstone of a Profile. Deleted and created anew, as `kubectl replace --force` does, it is
 * missing for a moment; a 404 in between would send its machines to their next boot device.
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

/** The tombstones that a step leaves and takes away. */
export function tombstoneWrites(
  groupChanges: readonly GroupChange[],
  options: TombstoneOptions,
): readonly TombstoneWrite[] {
  const graveyard = new Graveyard(options.textAt);
  const { left, taken } = gravesOf(groupChanges, options);
  for (const grave of left) if (!options.isTaken(groupOf(grave))) graveyard.bury(grave);
  for (const grave of taken) graveyard.cancel(grave);
  return graveyard.writes(options.ttlSeconds);
}

interface Buried extends Burial {
  readonly state?: GroupState | undefined;
}

class Graveyard {
  readonly #textAt: TombstoneOptions["textAt"];
  /** What a step writes, by path, and the object that last left it. */
  readonly #stones = new Map<string, { readonly stone: TombstoneDocument | undefined; readonly namespace: string }>();

  constructor(textAt: TombstoneOptions["textAt"]) {
    this.#textAt = textAt;
  }

  /** A stone that another Group left, or several, belongs to nobody from now on, and tells of all. */
  bury(grave: Grave): void {
    const { path, stone, namespace } = grave;
    const found = this.#at(path) ?? stone;
    const written = isSame(found, stone) ? stone : stoneOf(withSelector(found, grave));
    this.#stones.set(path, { stone: written, namespace });
  }

  cancel({ path, stone, namespace }: Grave): void {
    if (isSame(this.#at(path) ?? {}, stone)) this.#stones.set(path, { stone: undefined, namespace });
  }

  writes(ttlSeconds: number): readonly TombstoneWrite[] {
    return [...this.#stones].map(([path, { stone, namespace }]) =>
      stone === undefined
        ? { path, text: undefined, namespace }
        : { path, text: encodeDocument(stone), ttlSeconds, namespace },
    );
  }

  #at(path: string): TombstoneDocument | undefined {
    const planned = this.#stones.get(path);
    if (planned !== undefined) return planned.stone;
    const text = this.#textAt(path);
    return text === undefined ? undefined : (decodeTombstone(text) ?? {});
  }
}

/** What is in some claims and not in others. */
function without(claims: readonly IdentityClaim[], others: readonly IdentityClaim[]): readonly IdentityClaim[] {
  return claims.map((claim) => {
    const other = others.find(({ label, restText }) => label === claim.label && restText === claim.restText);
    if (other === undefined) return claim;
    return { ...claim, values: new Set([...claim.values].filter((value) => !other.values.has(value))) };
  });
}

/** What Groups no longer select by, and what they select by now and did not before. */
function gravesOf(groupChanges: readonly GroupChange[], { sha256, adminNamespace }: Burial) {
  const burial = { sha256, adminNamespace };
  const [left, taken]: [Grave[], Grave[]] = [[], []];
  for (const { id, before, after, state } of groupChanges) {
    const [old, now] = [before ? identityClaimsOf(before) : [], after ? identityClaimsOf(after) : []];
    if (before !== undefined) left.push(...gravesIn(without(old, now), { id, spec: before, state, ...burial }));
    if (after !== undefined) taken.push(...gravesIn(without(now, old), { id, spec: after, ...burial }));
  }
  return { left, taken };
}

function gravesIn(
  claims: readonly IdentityClaim[],
  { id, spec, sha256, adminNamespace, state = {} }: Pick<Grave, "id" | "spec"> & Buried,
): readonly Grave[] {
  if (claims.every(({ values }) => values.size === 0)) return [];
  const namespace = id.slice(0, id.indexOf("/"));
  const tenant = adminNamespace === undefined || namespace === adminNamespace ? undefined : namespace;
  const outcome = sha256(outcomeText(lasting(id, spec, state)));
  return claims.flatMap((claim) =>
    [...claim.values].map((value): Grave => {
      const { label } = claim;
      const rank = { namespace, priority: spec.priority, ...claimOn(state, label, value), outcome };
      const gone = { ...goneSelector(claim, value), rank };
      const selector = selectorText(gone.labels, gone.expressions);
      const path = tombstonePath(label, label === selectorPlace ? sha256(value) : value, tenant);
      return { id, spec, namespace, label, value, path, gone, stone: { group: id, selector, ...stoneOf([gone]) } };
    }),
  );
}

/**
 * The claim that a Group of this namespace had to the same machines until it went a moment ago; of a list the latest one.
 * Undefined where there was none for some of them.
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

/** The Group as its object describes it: other reasons to wait may end before it comes back. */
function lasting(id: string, spec: GroupSpec, { refused, outdated }: GroupState): Group {
  const [namespace = "", name = ""] = id.split("/");
  return toGroup(namespace, name, spec, { ...(refused && { refused }), ...(outdated && { outdated }) });
}

/** The Group as far as it was about these machines. */
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

/** The selectors of a stone with one more, the last that went at the end. */
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

/** Too many old ones become the label alone, with their highest priority and first claim. What they gave is left out. */
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
