/**
 * The documents of the ledger. They are in a store of their own, below `/davit` like all documents that followers get.
 *
 *   /davit/synced                              SyncedDocument, written when the ledger begins
 *   /davit/ledger/meta                         LedgerMeta
 *   /davit/ledger/marked                       MarkedDocument
 *   /davit/ledger/clock                        ClockDocument
 *   /davit/ledger/ended/<kind>/<ns>/<name>     EndedDocument: a grant that is over by its `until`
 *   /davit/ledger/adopted/<ns>/<name>          AdoptedDocument: a Group
 *   /davit/ledger/machines/<entry id>          LedgerEntry
 *   /davit/ledger/identities/<kind>/<value>    the id of the entry that has this identity
 *   /ledger-secret                             the key of the report tokens; not below `/davit`, so no follower gets it
 *
 * A document with a path or a form that this davit does not know counts as unreadable: a later davit may have recorded
 * in it that a permit is closed. So the readers drop no document, and a new kind of document is a new format.
 */

import { isJsonObject, type JsonObject, type JsonValue, parseJsonObject } from "../../model/json.ts";
import { davitRoot, decodeSegment, encodeSegment, syncedPath } from "../../model/objects/documents.ts";
import {
  installStates,
  type LedgerEntry,
  type ReportedLabel,
  type ReportedProgress,
  reportStates,
  type SpentGrant,
} from "../../model/permits/permit.ts";
import { type StorePath, storePath } from "../../store/core/node.ts";

/** Which ledger this is. */
export interface LedgerMeta {
  /** 8 hexadecimal digits, random. */
  readonly id: string;
  /** Unix milliseconds: entries that claimed earlier are of a former ledger, and no install of them goes on. */
  readonly beganAtMs: number;
}

/** The id of the ledger that has a mark outside its store (`LedgerMark`). */
interface MarkedDocument {
  readonly id: string;
}

/** The highest time that the ledger has seen. */
interface ClockDocument {
  readonly highestMs: number;
}

/** The highest generation of a grant that is over. */
interface EndedDocument {
  readonly generation: number;
}

interface AdoptedDocument {
  readonly untilMs: number;
}

// A ledger with another format has documents that this davit would misread.
const knownFormat = 1;

const ledgerRoot = `${davitRoot}/ledger`;
/** Everything of the ledger is below it, besides `secretPath` and `ledgerSyncedPath`. */
export const ledgerRootPath = storePath(ledgerRoot);
export const metaPath = storePath(`${ledgerRoot}/meta`);
export const markedPath = storePath(`${ledgerRoot}/marked`);
export const clockPath = storePath(`${ledgerRoot}/clock`);
export const secretPath = storePath("/ledger-secret");
export const ledgerSyncedPath = storePath(syncedPath);

/** @param key `group/NAMESPACE/NAME` or `machine/NAMESPACE/NAME`. */
export function endedPath(key: string): StorePath {
  return pathBelow("ended", key);
}

/** @param group `namespace/name`. */
export function adoptedPath(group: string): StorePath {
  return pathBelow("adopted", group);
}

/** Returns the path of an entry's document. */
export function entryPath(id: string): StorePath {
  return pathBelow("machines", id);
}

/** @param identity as in `LedgerEntry.identities`. */
export function identityPath(identity: string): StorePath {
  return pathBelow("identities", identity);
}

function pathBelow(folder: string, name: string): StorePath {
  return storePath([ledgerRoot, folder, ...name.split("/").map(encodeSegment)].join("/"));
}

/** What a path below `/davit` names in a ledger; undefined for a path that this davit does not know. */
export type LedgerAddress =
  | { readonly kind: "synced" | "meta" | "marked" | "clock" }
  | { readonly kind: "ended" | "adopted" | "entry" | "identity"; readonly name: string };

const folders: ReadonlyMap<
  string,
  { readonly kind: "ended" | "adopted" | "entry" | "identity"; readonly parts: number }
> = new Map([
  ["ended", { kind: "ended", parts: 3 }],
  ["adopted", { kind: "adopted", parts: 2 }],
  ["machines", { kind: "entry", parts: 1 }],
  ["identities", { kind: "identity", parts: 2 }],
]);

const singles: ReadonlyMap<string, LedgerAddress> = new Map([
  [syncedPath, { kind: "synced" }],
  [metaPath, { kind: "meta" }],
  [markedPath, { kind: "marked" }],
  [clockPath, { kind: "clock" }],
]);

/** Reads the path of a document of the ledger; undefined for a path that this davit does not know. */
export function ledgerAddress(path: string): LedgerAddress | undefined {
  const single = singles.get(path);
  if (single !== undefined) return single;
  if (!path.startsWith(`${ledgerRoot}/`)) return undefined;
  const [folder = "", ...segments] = path.slice(ledgerRoot.length + 1).split("/");
  const found = folders.get(folder);
  const names = segments.map(decodeSegment);
  if (found === undefined || names.length !== found.parts || names.some((name) => name === undefined)) return undefined;
  return { kind: found.kind, name: names.join("/") };
}

/** Returns the text of the document of that name, like all functions here that begin with `encode`. */
export function encodeMeta({ id, beganAtMs }: LedgerMeta): string {
  return JSON.stringify({ format: knownFormat, id, beganAtMs });
}

/** Reads what `encodeMeta` wrote; undefined for any other text. */
export function decodeMeta(text: string): LedgerMeta | undefined {
  const value = parseJsonObject(text);
  if (value === undefined || value.format !== knownFormat) return undefined;
  const { id, beganAtMs } = value;
  return typeof id === "string" && /^[0-9a-f]{8}$/.test(id) && isTime(beganAtMs) ? { id, beganAtMs } : undefined;
}

export function encodeMarked(document: MarkedDocument): string {
  return JSON.stringify(document);
}

export function decodeMarked(text: string): string | undefined {
  const id = parseJsonObject(text)?.id;
  return typeof id === "string" ? id : undefined;
}

export function encodeClock(document: ClockDocument): string {
  return JSON.stringify(document);
}

/** Returns the highest time; undefined for a text that `encodeClock` did not write. So do the next two. */
export function decodeClock(text: string): number | undefined {
  return numberIn(text, "highestMs");
}

export function encodeEnded(document: EndedDocument): string {
  return JSON.stringify(document);
}

export function decodeEnded(text: string): number | undefined {
  return numberIn(text, "generation");
}

export function encodeAdopted(document: AdoptedDocument): string {
  return JSON.stringify(document);
}

export function decodeAdopted(text: string): number | undefined {
  return numberIn(text, "untilMs");
}

function numberIn(text: string, member: string): number | undefined {
  const value = parseJsonObject(text)?.[member];
  return isTime(value) ? value : undefined;
}

/** Returns the text of an entry's document. */
export function encodeEntry(entry: LedgerEntry): string {
  return JSON.stringify(entry);
}

/** Reads what `encodeEntry` wrote, without members that it does not know; undefined for any other text. */
export function decodeEntry(text: string): LedgerEntry | undefined {
  const value = parseJsonObject(text);
  const required = value && requiredOf(value);
  if (value === undefined || required === undefined) return undefined;
  const grant = optional(value.grant, grantOf);
  const reported = optional(value.reported, reportedOf);
  const labels = optional(value.labels, labelsOf);
  if (grant === "unreadable" || reported === "unreadable" || labels === "unreadable") return undefined;
  const addresses = addressesOf(value);
  const added = addedOf(value);
  if (addresses === undefined || added === undefined) return undefined;
  return {
    ...required,
    ...added,
    ...addresses,
    ...(grant && { grant }),
    ...(reported && { reported }),
    ...(labels && { labels }),
  };
}

/** Reads the members that an entry of an earlier davit lacks. Undefined if one is unreadable. */
function addedOf({ revision, ...value }: JsonObject): Pick<LedgerEntry, "revision" | "forgottenUntil"> | undefined {
  const forgottenUntil = optional(value.forgottenUntil, spentOf);
  if (forgottenUntil === "unreadable" || !(revision === undefined || typeof revision === "string")) return undefined;
  return { ...(revision !== undefined && { revision }), ...(forgottenUntil && { forgottenUntil }) };
}

/** Undefined if a member is unreadable. */
function addressesOf({
  claimedFrom,
  otherAddress,
}: JsonObject): Pick<LedgerEntry, "claimedFrom" | "otherAddress"> | undefined {
  if (![claimedFrom, otherAddress].every((each) => each === undefined || typeof each === "string")) return undefined;
  return {
    ...(typeof claimedFrom === "string" && { claimedFrom }),
    ...(typeof otherAddress === "string" && { otherAddress }),
  };
}

function optional<Part>(
  value: JsonValue | undefined,
  read: (value: JsonValue) => Part | undefined,
): Part | undefined | "unreadable" {
  return value === undefined ? undefined : (read(value) ?? "unreadable");
}

function requiredOf(value: JsonObject): Omit<LedgerEntry, "grant" | "reported" | "labels"> | undefined {
  const { id, identities, state, claimedAtMs, changedAtMs, timeoutSeconds, group, profile, addresses } = value;
  const spent = spentOf(value.spent);
  const known = installStates.find((each) => each === state);
  if (spent === undefined || known === undefined || typeof id !== "string" || !areTexts(identities)) return undefined;
  if (!areTexts(addresses) || typeof group !== "string" || typeof profile !== "string") return undefined;
  if (!isTime(claimedAtMs) || !isTime(changedAtMs) || !isTime(timeoutSeconds)) return undefined;
  const times = { claimedAtMs, changedAtMs, timeoutSeconds };
  return { id, identities, state: known, spent, ...times, group, profile, addresses };
}

function spentOf(value: JsonValue | undefined): Record<string, number> | undefined {
  if (!isJsonObject(value)) return undefined;
  const entries: [string, number][] = [];
  for (const [key, generation] of Object.entries(value)) {
    if (!isTime(generation)) return undefined;
    entries.push([key, generation]);
  }
  return Object.fromEntries(entries);
}

function grantOf(value: JsonValue): SpentGrant | undefined {
  if (!isJsonObject(value)) return undefined;
  const { key, generation } = value;
  return typeof key === "string" && isTime(generation) ? { key, generation } : undefined;
}

function reportedOf(value: JsonValue): ReportedProgress | undefined {
  if (!isJsonObject(value)) return undefined;
  const { progress, message, atMs } = value;
  const state = reportStates.find((each) => each === value.state);
  if (state === undefined || !isTime(atMs)) return undefined;
  return {
    state,
    ...(typeof progress === "number" && { progress }),
    ...(typeof message === "string" && { message }),
    atMs,
  };
}

function labelsOf(value: JsonValue): Record<string, ReportedLabel> | undefined {
  if (!isJsonObject(value)) return undefined;
  const entries: [string, ReportedLabel][] = [];
  for (const [name, label] of Object.entries(value)) {
    if (!isJsonObject(label) || typeof label.value !== "string") return undefined;
    if (label.untilMs !== undefined && !isTime(label.untilMs)) return undefined;
    entries.push([name, { value: label.value, ...(label.untilMs !== undefined && { untilMs: label.untilMs }) }]);
  }
  return Object.fromEntries(entries);
}

function areTexts(value: JsonValue | undefined): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

/** True for a time, a duration or a generation: a whole number from 0. */
function isTime(value: JsonValue | undefined): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
