/**
 * The documents below `/davit` in the store: one JSON text each, except Secrets' texts. The controller writes them and
 * the boot index reads them. Both know their form only through this file.
 *
 *   /davit/profiles/<namespace>/<name>                   ProfileDocument
 *   /davit/groups/<namespace>/<name>                     GroupDocument
 *   /davit/groups/<namespace>/<name>~refused             GroupDocument, of a refused version with another selector
 *   /davit/machines/<namespace>/<name>                   MachineDocument of machine.ts
 *   /davit/_secrets/<namespace>/<profile>/<text>         a template's text from a Secret: see secret-texts.ts
 *   /davit/tombstones/<label>/<value>                    TombstoneDocument, expires
 *   /davit/tombstones/selector/<sha256>                  the same, of Groups whose selectors name no machine
 *   /davit/tombstones/tenant/<namespace>/<label>/<value> the same, of Groups outside the admin namespace
 *   /davit/tombstones/profile/<namespace>/<name>         ProfileTombstone, expires
 *   /davit/tombstones/machine/<namespace>/<name>         MachineTombstone of machine.ts, expires
 *   /davit/synced                                        SyncedDocument, the last write of a first sync
 *   /davit/versions                                      SourceVersions, for the controller alone
 */

import { isJsonObject } from "../json.ts";
import { type Expression, isExpression } from "../labels/expression.ts";
import { identityLabels } from "../labels/labels.ts";
import { asWritten as profileAsWritten, ungated, type Written } from "./gated-profile.ts";
import type { GroupSpec, GroupState } from "./group.ts";
import type { ProfileContent } from "./profile.ts";

/** Root of everything that davit itself keeps in the store. */
export const davitRoot = "/davit";
export const syncedPath = `${davitRoot}/synced`;
export const versionsPath = `${davitRoot}/versions`;
export const profilesRoot = `${davitRoot}/profiles`;
export const groupsRoot = `${davitRoot}/groups`;
export const machinesRoot = `${davitRoot}/machines`;
export const secretsRoot = `${davitRoot}/_secrets`;
export const tombstonesRoot = `${davitRoot}/tombstones`;
const profilePlace = "profile";
const machinePlace = "machine";
const tenantPlace = "tenant";

/**
 * Identity labels whose values get tombstones when a Group is removed. An older davit that knows fewer identity labels
 * ignores the tombstones of those that it does not know.
 */
export const tombstoneLabels = identityLabels;
/** Replaces the label in the paths of tombstones of Groups that name no machine. No identity label has this name. */
export const selectorPlace = "selector";

/** The object and the version that a document was made from. */
interface Provenance {
  /** For people: file and document, or `cluster`. */
  readonly origin: string;
  readonly uid: string;
  /** `metadata.generation`; 1 for files, which have none. */
  readonly generation: number;
}

export interface ProfileDocument extends Provenance {
  /** Hash of the spec and of every resolved reference: Profiles with equal revisions boot alike. */
  readonly revision: string;
  readonly content: ProfileContent;
  /** davit failed on every version so far, so the Profile's machines get nothing and wait. */
  readonly failed?: true;
  /** The content is of an older version, because the newest one is refused or invalid. No `Install` is served. */
  readonly outdated?: true;
}

export interface GroupDocument extends Provenance, GroupState {
  readonly spec: GroupSpec;
}

/**
 * The true fields of a Group with expressions or `approval`. An older davit knows neither. A Group without its
 * expressions would select too many machines, and one without `approval` would serve too many. So the document's other
 * fields describe a refused Group, and the machines of an older davit wait. That Group has the same labels; if there
 * are none, it has `matchAll`. With expressions, it ranks just before all other Groups of its priority.
 */
interface Exact extends Pick<GroupSpec, "priority"> {
  readonly expressions: readonly Expression[];
  readonly refused: boolean;
}

// Priorities are whole numbers, so this ranks a Group between its priority and the next one.
const beforeItsPriority = 0.5;

/**
 * A Group that selected by the label and value of this document's path was just removed. A machine that the Group's
 * selector matches waits if it would now get a Group that ranks behind the removed one: see
 * `boot/core/known-tombstones.ts`. The tombstone names the removed Group, and davit deletes it when this Group returns.
 * A tombstone of several Groups names none of them, and stays until it expires.
 */
export interface TombstoneDocument {
  /** `namespace/name`. */
  readonly group?: string;
  /** The selector that the Group had, as text. */
  readonly selector?: string;
  /** The selectors of all removed Groups, label to value. Older versions of davit write none. */
  readonly labels?: readonly LabelValues[];
  /** The expressions of each selector, in the order of `labels`; absent if no selector has any. */
  readonly expressions?: readonly (readonly Expression[])[];
  /** The rank of each Group, in the order of `labels`; null for a Group that an older version of davit recorded. */
  readonly ranks?: readonly (GoneRank | null)[];
}

/** What ranks a removed Group, besides its selector. */
export interface GoneRank {
  readonly namespace: string;
  /** The priority that took effect. */
  readonly priority: number;
  /** The Group's claim to the machines of this tombstone: see `GroupState`. */
  readonly claimedAt?: number;
  readonly tenant?: true;
  /** Hash of the Group's `outcomeText`. Older versions of davit write none. */
  readonly outcome?: string;
}

type LabelValues = Readonly<Record<string, string>>;

/** A Profile was just removed: the machines of its Groups wait, because the Profile may return. */
interface ProfileTombstone {
  /** `namespace/name`. */
  readonly goneProfile: string;
}

/** What a tombstone records of a removed Group. */
export interface GoneSelector {
  readonly labels: LabelValues;
  readonly expressions: readonly Expression[];
  /** Absent if an older version of davit wrote it. */
  readonly rank?: GoneRank;
}

export interface SyncedDocument {
  /** Part of the source cannot be read now, and may hold an object for any machine: no `Install` is served. */
  readonly half?: true;
  /** Changes of the source are seen, but are not in the store yet: no `Install` is served. */
  readonly changing?: true;
  /** Which source filled the store: `directory` or `cluster`. */
  readonly source: string;
  /** When the source filled the store, RFC 3339. */
  readonly at: string;
  /** Hash of all revisions of that sync. */
  readonly revision: string;
  /**
   * False until davit has read the whole source once. Until then an unread file may hold a machine's own Group. So
   * davit answers only by Groups that name a machine (docs/internals/decisions/0001-first-sync-with-a-broken-file.md).
   */
  readonly complete: boolean;
}

export function profilePath(namespace: string, name: string): string {
  return `${profilesRoot}/${namespace}/${name}`;
}

export function groupPath(namespace: string, name: string): string {
  return `${groupsRoot}/${namespace}/${name}`;
}

export function machinePath(namespace: string, name: string): string {
  return `${machinesRoot}/${namespace}/${name}`;
}

/** @param text the name of the text: see `secret-texts.ts`. */
export function secretPath(namespace: string, profile: string, text: string): string {
  return `${secretsRoot}/${namespace}/${profile}/${text}`;
}

const twinSuffix = "~refused";

/**
 * Returns the name of a Group's twin: the refused version, stored beside the last accepted one if their selectors
 * differ. An older davit that does not know twins reads a refused Group of this name, so it makes the machines wait,
 * too. No object can have such a name.
 */
export function twinName(name: string): string {
  return `${name}${twinSuffix}`;
}

/** Returns a Group's name from the name of its document or of its twin. */
export function ownerName(name: string): string {
  return name.endsWith(twinSuffix) ? name.slice(0, -twinSuffix.length) : name;
}

/**
 * @param value of an identity label, as `normalizeLabel` returns it. It may hold any character, even a slash.
 * @param tenant the namespace of the Group, if it is outside the admin namespace. Each tenant has separate tombstones,
 * because an addition to a tombstone restarts the time until it expires.
 */
export function tombstonePath(label: string, value: string, tenant?: string): string {
  const root = tenant === undefined ? tombstonesRoot : `${tombstonesRoot}/${tenantPlace}/${tenant}`;
  return `${root}/${label}/${encodeSegment(value)}`;
}

export function profileTombstonePath(namespace: string, name: string): string {
  return `${tombstonesRoot}/${profilePlace}/${namespace}/${name}`;
}

export function machineTombstonePath(namespace: string, name: string): string {
  return `${tombstonesRoot}/${machinePlace}/${namespace}/${name}`;
}

/** Where a tombstone is. */
export interface TombstonePlace {
  readonly label: string;
  readonly value: string;
  /** See `tombstonePath`. */
  readonly tenant?: string;
}

/** The kind and the name of the document at a path below `/davit`. */
type DocumentAddress =
  | {
      readonly kind: "profile" | "group" | "machine" | "goneProfile" | "goneMachine";
      readonly namespace: string;
      readonly name: string;
    }
  | { readonly kind: "secret"; readonly namespace: string; readonly profile: string; readonly text: string }
  | ({ readonly kind: "tombstone" } & TombstonePlace)
  | { readonly kind: "synced" };

/** Reads the path of a document; undefined for any other path. */
export function documentAddress(path: string): DocumentAddress | undefined {
  if (path === syncedPath) return { kind: "synced" };
  if (path.startsWith(tombstonesPrefix)) return tombstoneAddress(path.slice(tombstonesPrefix.length).split("/"));
  const [first, root, folder, namespace, name, text, ...rest] = path.split("/");
  if (first !== "" || root !== "davit" || !namespace || !name || rest.length > 0) return undefined;
  if (folder === "_secrets") return text ? { kind: "secret", namespace, profile: name, text } : undefined;
  if (text !== undefined) return undefined;
  if (folder === "profiles") return { kind: "profile", namespace, name };
  if (folder === "machines") return { kind: "machine", namespace, name };
  return folder === "groups" ? { kind: "group", namespace, name } : undefined;
}

type AnyDocument = ProfileDocument | GroupDocument | TombstoneDocument | ProfileTombstone | SyncedDocument;

export function encodeDocument(document: AnyDocument): string {
  if ("spec" in document) return JSON.stringify(asWritten(document));
  return JSON.stringify("content" in document ? profileAsWritten(document) : document);
}

function asWritten(document: GroupDocument): GroupDocument & { readonly exact?: Exact } {
  const { expressions, ...spec } = document.spec;
  const { priority, approval } = spec;
  if (expressions === undefined) {
    if (approval === undefined) return document;
    return { ...document, refused: true, exact: { expressions: [], priority, refused: document.refused === true } };
  }
  const matchAll = Object.keys(spec.selector).length === 0;
  return {
    ...document,
    spec: { ...spec, matchAll, priority: priority + beforeItsPriority },
    refused: true,
    exact: { expressions, priority, refused: document.refused === true },
  };
}

/**
 * Reads what `encodeDocument` wrote; undefined for any other text. It checks only a few members, because only davit
 * writes below `/davit`.
 */
export function decodeProfile(text: string): ProfileDocument | undefined {
  const written = decode<Written<ProfileDocument>>(
    text,
    (value) => isProfile(value) && isProfile(value.encrypted ?? value),
  );
  const document = written?.encrypted ?? written;
  return document?.gated === undefined ? document : ungated({ ...document, gated: document.gated });
}

function isProfile(value: unknown): boolean {
  return isJsonObject(value) && isJsonObject(value.content) && isJsonObject(value.content.templates);
}

/**
 * Like `decodeProfile`. If a newer davit wrote expressions that this one cannot read, the result is a refused Group.
 */
export function decodeGroup(text: string): GroupDocument | undefined {
  const document = decode<GroupDocument & { readonly exact?: unknown }>(
    text,
    ({ spec }) => isJsonObject(spec) && isJsonObject(spec.selector) && typeof spec.profile === "string",
  );
  if (document === undefined || !isExact(document.exact)) return document;
  const { exact, refused: _, ...rest } = document;
  const { expressions, priority, refused } = exact;
  if (expressions.length === 0) return { ...rest, ...(refused && { refused }) };
  return { ...rest, spec: { ...rest.spec, matchAll: false, priority, expressions }, ...(refused && { refused }) };
}

/** Like `decodeProfile`. */
export function decodeTombstone(text: string): TombstoneDocument | undefined {
  return decode<TombstoneDocument>(text, ({ labels, expressions, ranks }) => {
    if (labels === undefined) return expressions === undefined && ranks === undefined;
    return areSelectors(labels, expressions) && (ranks === undefined || areRanks(ranks, labels));
  });
}

/** Returns the selectors of a tombstone. If it records none, one selector with the label and value of its path. */
export function tombstoneSelectors(
  { labels = [], expressions = [], ranks = [] }: TombstoneDocument,
  label: string,
  value: string,
): readonly GoneSelector[] {
  if (labels.length === 0) return [{ labels: { [label]: value }, expressions: [] }];
  return labels.map((each, at) => {
    const rank = ranks[at] ?? undefined;
    return { labels: each, expressions: expressions[at] ?? [], ...(rank && { rank }) };
  });
}

/** Like `decodeProfile`. */
export function decodeSynced(text: string): SyncedDocument | undefined {
  return decode<SyncedDocument>(text, (value) => typeof value.complete === "boolean");
}

const tombstonesPrefix = `${tombstonesRoot}/`;

function tombstoneAddress(segments: readonly string[]): DocumentAddress | undefined {
  const [folder = "", namespace, name, ...rest] = segments;
  if (segments.includes("")) return undefined;
  if (folder !== tenantPlace) return name === undefined ? stoneAddress(segments) : goneObjectAddress(segments);
  const address = stoneAddress([name ?? "", ...rest]);
  return address && namespace !== undefined ? { ...address, tenant: namespace } : undefined;
}

function goneObjectAddress([folder, namespace, name, ...rest]: readonly string[]): DocumentAddress | undefined {
  if (namespace === undefined || name === undefined || rest.length > 0) return undefined;
  if (folder === profilePlace) return { kind: "goneProfile", namespace, name };
  return folder === machinePlace ? { kind: "goneMachine", namespace, name } : undefined;
}

function stoneAddress([label = "", segment = "", ...rest]: readonly string[]) {
  const value = decodeSegment(segment);
  const isKnown = tombstoneLabels.includes(label) || label === selectorPlace;
  if (value === undefined || value === "" || !isKnown || rest.length > 0) return undefined;
  return { kind: "tombstone" as const, label, value };
}

function isExact(value: unknown): value is Exact {
  if (!isJsonObject(value)) return false;
  const { expressions, priority, refused } = value;
  return areExpressions(expressions) && typeof priority === "number" && typeof refused === "boolean";
}

function areSelectors(labels: unknown, expressions: unknown): boolean {
  if (!Array.isArray(labels) || labels.length === 0 || !labels.every(areLabels)) return false;
  if (expressions === undefined) return true;
  return Array.isArray(expressions) && expressions.length === labels.length && expressions.every(areExpressions);
}

function areRanks(ranks: unknown, labels: unknown): boolean {
  if (!Array.isArray(ranks) || !Array.isArray(labels) || ranks.length !== labels.length) return false;
  return ranks.every((rank) => rank === null || isRank(rank));
}

function isRank(value: unknown): boolean {
  return isJsonObject(value) && typeof value.namespace === "string" && typeof value.priority === "number";
}

function areLabels(value: unknown): boolean {
  return isJsonObject(value) && Object.values(value).every((text) => typeof text === "string");
}

function areExpressions(value: unknown): boolean {
  return Array.isArray(value) && value.every(isExpression);
}

/**
 * Returns a text as one segment of a path. Colons stay, because people read MAC addresses. `.` and `..` are escaped,
 * because paths give them another meaning.
 */
export function encodeSegment(value: string): string {
  const encoded = encodeURIComponent(value.toWellFormed()).replaceAll("%3A", ":");
  return /^\.{1,2}$/.test(encoded) ? encoded.replaceAll(".", "%2E") : encoded;
}

/** Reads what `encodeSegment` returned; undefined for a segment with a bad escape. */
export function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    // A bad escape: davit did not write this path.
    return undefined;
  }
}

function decode<Document>(
  text: string,
  fits: (value: Readonly<Record<string, unknown>>) => boolean,
): Document | undefined {
  // Callers pass "" for a document that does not exist, 100,000 times in a large step. Catching an error is slow.
  if (text === "") return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) && fits(value) ? (value as unknown as Document) : undefined;
  } catch {
    return undefined;
  }
}
