/**
 * Tombstones. The step that removes a Group, or changes its selector, also writes tombstones: one for each value of the
 * identity labels that the selector names, or one for the whole selector if it names none. Until a tombstone ends, the
 * boot service answers 503 to a machine that the old selector matches and whose winner ranks behind the removed Group
 * (`boot/known-tombstones.ts`). So while thousands of Groups are removed, no named machine gets a catch-all, or a Group
 * that would install it anew.
 *
 * If another Group outranks the removed one on all of its machines, no tombstone is written: no machine misses the
 * Group, and a Group without effect must not make machines of others wait.
 *
 * Any changed selector counts as removed. A narrower one may no longer match the old one's machines. A wider one may
 * belong to a new Group of the same name, meant for other machines. If only a list of values changed, only the values
 * that it lost count. A Group that returns unchanged removes its own tombstones. A tombstone of several Groups records
 * all of their selectors, and it only ends by itself. Pure.
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

/** A step's change to one Group; undefined where there is no Group. */
export interface GroupChange {
  /** `namespace/name`. */
  readonly id: string;
  readonly before: GroupSpec | undefined;
  readonly after: GroupSpec | undefined;
  /** The state of the Group before. */
  readonly state?: GroupState;
}

/** @param before the stored document of the Group so far. */
export function groupChangeOf(
  { namespace, name }: Pick<ObjectName, "namespace" | "name">,
  before: GroupDocument | undefined,
  after: GroupDocument | undefined,
): GroupChange {
  return { id: `${namespace}/${name}`, before: before?.spec, after: after?.spec, ...(before && { state: before }) };
}

/** A step's change to one Profile: whether it existed, and whether it exists now. */
export interface ProfileChange {
  readonly name: Pick<ObjectName, "namespace" | "name">;
  readonly before: boolean;
  readonly after: boolean;
}

/** The tombstone of an object in this namespace. */
export interface TombstoneWrite extends DocumentWrite {
  readonly namespace: string;
}

export interface TombstoneOptions {
  readonly sha256: (text: string) => string;
  /** True when another Group selects all machines of a removed Group and outranks it. */
  readonly isTaken: (gone: Group) => boolean;
  /** The text of the tombstone that is stored at a path. */
  readonly textAt: (path: string) => string | undefined;
  /** How long a tombstone lasts: whole seconds, at least 1. */
  readonly ttlSeconds: number;
  /** Undefined if no namespace ranks before the others: then they share their tombstones. */
  readonly adminNamespace?: string | undefined;
}

type Burial = Pick<TombstoneOptions, "sha256" | "adminNamespace">;

/** A label's value that a Group selected by, or selects by now; or its whole selector if it names no machine. */
interface Grave {
  /** The Group's id; the spec is the Group's, too. */
  readonly id: string;
  readonly spec: GroupSpec;
  readonly namespace: string;
  readonly label: string;
  readonly value: string;
  readonly path: string;
  readonly gone: GoneSelector;
  /** The tombstone to write there. */
  readonly stone: TombstoneDocument;
}

// The limit for each namespace. Each request of the machine compares all selectors, and each change of a Group's
// selector adds one.
const mostSelectors = 16;

/**
 * A step's write to the tombstone of a Profile. A Profile that is deleted and created anew, as by `kubectl replace
 * --force`, is missing for a moment; a 404 in between would send its machines to their next boot device.
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
  for (const grave of taken) graveyard.cancel(grave);
  return graveyard.writes(options.ttlSeconds);
}

interface Buried extends Burial {
  readonly state?: GroupState | undefined;
}

class Graveyard {
  readonly #textAt: TombstoneOptions["textAt"];
  /** What a step writes, by path, and the namespace of the last object that caused it. */
  readonly #stones = new Map<string, { readonly stone: TombstoneDocument | undefined; readonly namespace: string }>();

  constructor(textAt: TombstoneOptions["textAt"]) {
    this.#textAt = textAt;
  }

  /** Adds a Group to a tombstone. A tombstone of several Groups names none of them, and records all selectors. */
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

/** The parts of these claims that the others lack. */
function without(claims: readonly IdentityClaim[], others: readonly IdentityClaim[]): readonly IdentityClaim[] {
  return claims.map((claim) => {
    const other = others.find(({ label, restText }) => label === claim.label && restText === claim.restText);
    if (other === undefined) return claim;
    return { ...claim, values: new Set([...claim.values].filter((value) => !other.values.has(value))) };
  });
}

/** What Groups no longer select, and what they newly select. */
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
 * The claim to the same machines of a Group of this namespace that was just removed; for a list, the latest claim.
 * Undefined if some of the machines had no such Group.
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

/** The Group as its object describes it: other reasons to wait may end before it returns. */
function lasting(id: string, spec: GroupSpec, { refused, outdated }: GroupState): Group {
  const [namespace = "", name = ""] = id.split("/");
  return toGroup(namespace, name, spec, { ...(refused && { refused }), ...(outdated && { outdated }) });
}

/** The part of the Group that concerns these machines. */
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

/** The selectors of a stone and one more, the newest at the end. */
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
 * Merges old selectors into one that has only the label, with their highest priority and first claim, but without an
 * outcome.
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
