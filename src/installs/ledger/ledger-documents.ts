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

import {
  type Decoder,
  lenient,
  list,
  number,
  object,
  oneOf,
  optional,
  parsed,
  record,
  text,
  where,
  whole,
} from "../../lib/shape.ts";
import { davitRoot, decodeSegment, encodeSegment, syncedPath } from "../../model/objects/documents.ts";
import { installStates, type LedgerEntry, reportStates } from "../../model/permits/permit.ts";
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

const metaShape = object({
  format: where((value) => value === knownFormat, "is another format"),
  id: where((value): value is string => typeof value === "string" && /^[0-9a-f]{8}$/.test(value), "is no id"),
  beganAtMs: whole,
});

/** Reads what `encodeMeta` wrote; undefined for any other text. */
export function decodeMeta(json: string): LedgerMeta | undefined {
  const meta = parsed(metaShape, json);
  return meta && { id: meta.id, beganAtMs: meta.beganAtMs };
}

export function encodeMarked(document: MarkedDocument): string {
  return JSON.stringify(document);
}

export function decodeMarked(json: string): string | undefined {
  return parsed(object({ id: text }), json)?.id;
}

export function encodeClock(document: ClockDocument): string {
  return JSON.stringify(document);
}

/** Returns the highest time; undefined for a text that `encodeClock` did not write. So do the next two. */
export function decodeClock(json: string): number | undefined {
  return parsed(object({ highestMs: whole }), json)?.highestMs;
}

export function encodeEnded(document: EndedDocument): string {
  return JSON.stringify(document);
}

export function decodeEnded(json: string): number | undefined {
  return parsed(object({ generation: whole }), json)?.generation;
}

export function encodeAdopted(document: AdoptedDocument): string {
  return JSON.stringify(document);
}

export function decodeAdopted(json: string): number | undefined {
  return parsed(object({ untilMs: whole }), json)?.untilMs;
}

/** Returns the text of an entry's document. */
export function encodeEntry(entry: LedgerEntry): string {
  return JSON.stringify(entry);
}

const entryShape: Decoder<LedgerEntry> = object({
  id: text,
  identities: list(text),
  state: oneOf(installStates),
  spent: record(whole),
  claimedAtMs: whole,
  changedAtMs: whole,
  timeoutSeconds: whole,
  group: text,
  profile: text,
  addresses: list(text),
  // An entry of an earlier davit lacks these two.
  revision: optional(text),
  forgottenUntil: optional(record(whole)),
  claimedFrom: optional(text),
  otherAddress: optional(text),
  grant: optional(object({ key: text, generation: whole })),
  reported: optional(
    object({ state: oneOf(reportStates), progress: lenient(number), message: lenient(text), atMs: whole }),
  ),
  labels: optional(record(object({ value: text, untilMs: optional(whole) }))),
});

/** Reads what `encodeEntry` wrote, without members that it does not know; undefined for any other text. */
export function decodeEntry(json: string): LedgerEntry | undefined {
  return parsed(entryShape, json);
}
