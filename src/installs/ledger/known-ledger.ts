/**
 * What a ledger's documents say: the read model of the ledger's writer and of its followers. It never writes, and never
 * waits. While a document is unreadable it names no ledger, so nothing installs: the document may record a spent grant.
 */

import type { Clock } from "../../lib/clock.ts";
import { MultiMap, Several } from "../../lib/multi-map.ts";
import type { DocumentChange, FeedListener } from "../../model/feed.ts";
import type { LabelPair, Labels } from "../../model/labels/labels.ts";
import { identitiesOf } from "../../model/objects/machine.ts";
import { type LedgerEntry, type LedgerView, stillCounts } from "../../model/permits/permit.ts";
import { recognised } from "../../model/permits/recognised.ts";
import {
  decodeAdopted,
  decodeClock,
  decodeEnded,
  decodeEntry,
  decodeMarked,
  decodeMeta,
  type LedgerAddress,
  type LedgerMeta,
  ledgerAddress,
} from "./ledger-documents.ts";
import type { MarkProblem } from "./mark-problem.ts";

/**
 * Called after a change with the entries that changed, as they are now. A removed entry is as it was. Undefined if
 * anything may have changed.
 */
type LedgerListener = (entries: readonly LedgerEntry[] | undefined) => void;

const presetMaxEntries = 65_536;
const noLabels: readonly LabelPair[] = [];

/** How old a copy of the ledger is. */
interface LedgerFreshness {
  /** When the copy was last known to be complete, on the monotonic clock; undefined if it never was. */
  readonly provenAtMs: number | undefined;
  /** Why the copy may be too old; undefined if it is not. */
  readonly staleness: string | undefined;
}

interface KnownLedgerOptions {
  readonly clock: Clock;
  /** 65,536 unless given. */
  readonly maxEntries?: number;
  /** Returns why nothing installs now, if this davit writes the ledger. */
  readonly trouble?: () => MarkProblem | undefined;
}

export class KnownLedger implements FeedListener, LedgerView {
  readonly #clock: Clock;
  readonly #trouble: () => MarkProblem | undefined;
  /** The most machines. */
  readonly maxEntries: number;
  readonly #listeners = new Set<LedgerListener>();
  #freshness: LedgerFreshness | undefined;
  /**
   * Stays true. After the Profile with `reports` is removed, the ledger's entries may go, too, and an older copy of the
   * ledger may return.
   */
  #hasReports = false;
  #meta: LedgerMeta | undefined;
  #markedId: string | undefined;
  #markedMs = 0;
  #ended = new Map<string, number>();
  #adopted = new Map<string, number>();
  #entries = new Map<string, LedgerEntry>();
  #index = new EntryIndex();
  #underWay = new Map<string, LedgerEntry>();
  #unreadable = new Set<string>();
  /** The highest known time, and the monotonic time at which it became known. */
  #highestMs = 0;
  #highestAtMs = 0;

  constructor({ clock, maxEntries = presetMaxEntries, trouble = () => undefined }: KnownLedgerOptions) {
    this.#clock = clock;
    this.#trouble = trouble;
    this.maxEntries = maxEntries;
  }

  get id(): string | undefined {
    return this.#unreadable.size > 0 ? undefined : this.#meta?.id;
  }

  get trouble(): string | undefined {
    const problem = this.#trouble();
    return problem?.isLasting === true ? problem.text : undefined;
  }

  /** Sets the source of this copy's age. Without it, the copy never counts as too old. */
  freshBy(freshness: LedgerFreshness): void {
    this.#freshness = freshness;
  }

  get provenAtMs(): number | undefined {
    return this.#freshness?.provenAtMs;
  }

  get hasReports(): boolean {
    return this.#hasReports;
  }

  get mayMissReports(): boolean {
    return this.id === undefined || this.#freshness?.staleness !== undefined;
  }

  /** Which ledger this is, even if a document is unreadable. */
  get meta(): LedgerMeta | undefined {
    return this.#meta;
  }

  /** True once the ledger has a mark outside its store. */
  get isMarked(): boolean {
    return this.#meta !== undefined && this.#markedId === this.#meta.id;
  }

  /** The highest ended generation of each grant, by the grant's key. */
  get ended(): ReadonlyMap<string, number> {
    return this.#ended;
  }

  /** Until when machines of a Group count as installed, by the Group's `namespace/name`. */
  get adopted(): ReadonlyMap<string, number> {
    return this.#adopted;
  }

  /** True if the ledger has recorded a machine or the end of a grant. */
  get isUsed(): boolean {
    return this.#entries.size > 0 || this.#ended.size > 0;
  }

  /** The highest time that the documents keep, besides those of the entries; 0 for none. */
  get markedMs(): number {
    return this.#markedMs;
  }

  /** How many documents are unreadable. */
  get unreadable(): number {
    return this.#unreadable.size;
  }

  /**
   * Unix milliseconds: the highest known time, and what has passed since by the monotonic clock. So a wall clock that
   * was set back stops neither the script window nor a timeout.
   */
  get nowMs(): number {
    this.#learnTime(this.#clock.nowMs());
    return this.#steadyMs;
  }

  /** True if there is no room for another machine. */
  get isFull(): boolean {
    return this.#entries.size >= this.maxEntries;
  }

  /** All entries by their ids. The map is live. */
  get entries(): ReadonlyMap<string, LedgerEntry> {
    return this.#entries;
  }

  /** The entries that are Claimed or Installing. */
  get underWay(): ReadonlyMap<string, LedgerEntry> {
    return this.#underWay;
  }

  endedGeneration(key: string): number {
    return this.#ended.get(key) ?? 0;
  }

  adoptedUntilMs(group: string): number {
    return this.#adopted.get(group) ?? 0;
  }

  entriesOf(identities: readonly string[]): readonly LedgerEntry[] {
    return this.#index.entriesOf(identities);
  }

  /**
   * Returns the labels that the machine of a request has reported, without those whose time is over. None if its entry
   * does not count for each identity of the request (`EntryIndex.soleOf`): then another one may have reported them.
   * @param listed see `BootLedger`.
   */
  reportedLabels(request: Labels, listed?: readonly string[]): readonly LabelPair[] {
    const found = this.#index.soleOf(request, listed);
    if (found === undefined) return noLabels;
    // Only labels that end need the time: to read the clock takes longer than the look-up.
    return found.lasting ?? labelsAt(found.entry, this.nowMs);
  }

  /** Calls `listener` after each change. @returns a function that ends the calls. */
  onChange(listener: LedgerListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  replaced(documents: Iterable<readonly [path: string, text: string]>): void {
    this.#meta = undefined;
    this.#markedId = undefined;
    this.#markedMs = 0;
    this.#ended = new Map();
    this.#adopted = new Map();
    this.#entries = new Map();
    this.#index = new EntryIndex();
    this.#underWay = new Map();
    this.#unreadable = new Set();
    for (const [path, text] of documents) this.#learn(path, text);
    for (const listener of this.#listeners) listener(undefined);
  }

  changed(changes: readonly DocumentChange[]): void {
    const entries: LedgerEntry[] = [];
    let isWider = false;
    for (const { path, text } of changes) {
      const address = ledgerAddress(path);
      const former = this.#entryAt(address);
      if (text === undefined) this.#forget(path, address);
      else this.#learn(path, text);
      const entry = this.#entryAt(address) ?? former;
      if (entry !== undefined) entries.push(entry);
      isWider ||= address === undefined || !isOfEntries(address);
    }
    if (entries.length === 0 && !isWider) return;
    for (const listener of this.#listeners) listener(isWider ? undefined : entries);
  }

  #entryAt(address: LedgerAddress | undefined): LedgerEntry | undefined {
    return address?.kind === "entry" ? this.#entries.get(address.name) : undefined;
  }

  get #steadyMs(): number {
    return Math.floor(this.#highestMs + this.#clock.monotonicMs() - this.#highestAtMs);
  }

  #learnTime(timeMs: number): void {
    if (timeMs <= this.#steadyMs) return;
    this.#highestMs = timeMs;
    this.#highestAtMs = this.#clock.monotonicMs();
  }

  #learn(path: string, text: string): void {
    const address = ledgerAddress(path);
    if (address !== undefined && this.#read(address, text)) this.#unreadable.delete(path);
    else this.#unreadable.add(path);
  }

  /** @returns false if the text is unreadable. Then what was known stays. */
  #read(address: LedgerAddress, text: string): boolean {
    switch (address.kind) {
      case "synced":
      case "identity":
        return true;
      case "meta":
        return this.#readMeta(decodeMeta(text));
      case "marked":
        this.#markedId = decodeMarked(text);
        return this.#markedId !== undefined;
      case "clock":
        return this.#readClock(decodeClock(text));
      case "ended":
        return put(this.#ended, address.name, decodeEnded(text));
      case "adopted":
        return put(this.#adopted, address.name, decodeAdopted(text));
      case "entry":
        return this.#readEntry(address.name, decodeEntry(text));
    }
  }

  #readMeta(meta: LedgerMeta | undefined): boolean {
    if (meta === undefined) return false;
    this.#meta = meta;
    return this.#readTime(meta.beganAtMs);
  }

  #readClock(highestMs: number | undefined): boolean {
    this.#markedMs = highestMs ?? this.#markedMs;
    return this.#readTime(highestMs);
  }

  #readTime(timeMs: number | undefined): boolean {
    if (timeMs !== undefined) this.#learnTime(timeMs);
    return timeMs !== undefined;
  }

  #readEntry(id: string, entry: LedgerEntry | undefined): boolean {
    if (entry === undefined || entry.id !== id) return false;
    this.#removeEntry(id);
    this.#entries.set(id, entry);
    if (entry.state === "Claimed" || entry.state === "Installing") this.#underWay.set(id, entry);
    this.#index.add(entry);
    this.#hasReports ||= entry.labels !== undefined;
    this.#learnTime(Math.max(entry.claimedAtMs, entry.changedAtMs));
    return true;
  }

  #removeEntry(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    this.#underWay.delete(id);
    this.#index.remove(entry);
  }

  #forget(path: string, address: LedgerAddress | undefined): void {
    this.#unreadable.delete(path);
    if (address?.kind === "meta") this.#meta = undefined;
    if (address?.kind === "marked") this.#markedId = undefined;
    if (address?.kind === "ended") this.#ended.delete(address.name);
    if (address?.kind === "adopted") this.#adopted.delete(address.name);
    if (address?.kind === "entry") this.#removeEntry(address.name);
  }
}

/** True for documents whose changes concern single entries, and for the clock, which no listener needs. */
function isOfEntries({ kind }: LedgerAddress): boolean {
  return kind === "entry" || kind === "identity" || kind === "clock";
}

function labelsAt({ labels = {} }: LedgerEntry, nowMs: number): readonly LabelPair[] {
  const lasting = Object.entries(labels).filter(([, label]) => stillCounts(label, nowMs));
  return lasting.map(([name, { value }]) => [name, value]);
}

function put(map: Map<string, number>, name: string, value: number | undefined): boolean {
  if (value !== undefined) map.set(name, value);
  return value !== undefined;
}

/** An entry with its labels as look-ups need them. A changed entry is a new object. */
interface IndexedEntry {
  readonly entry: LedgerEntry;
  /** What the machine has reported; undefined if any of it ends at a time. */
  readonly lasting: readonly LabelPair[] | undefined;
}

/**
 * Finds entries by the identities of their machines. Each boot of a known machine looks here, so for the usual machine
 * `soleOf` makes no new string, list or map.
 */
class EntryIndex {
  /**
   * By the bare values of identities. No uuid equals a MAC address, and requests have the values without the kind, so a
   * look-up needs no new key.
   */
  readonly #byValue = new MultiMap<IndexedEntry>();

  add(entry: LedgerEntry): void {
    const labels = Object.entries(entry.labels ?? {});
    const isLasting = labels.every(([, { untilMs }]) => untilMs === undefined);
    const lasting = isLasting ? labels.map(([name, { value }]) => [name, value] as const) : undefined;
    const indexed = { entry, lasting };
    for (const identity of entry.identities) this.#byValue.add(bareValue(identity), indexed);
  }

  /** @param entry the same object that was added. */
  remove(entry: LedgerEntry): void {
    for (const value of entry.identities.map(bareValue)) {
      const indexed = this.#byValue.of(value).find((other) => other.entry === entry);
      if (indexed !== undefined) this.#byValue.remove(value, indexed);
    }
  }

  /** Returns the distinct entries that have one of these identities. */
  entriesOf(identities: readonly string[]): readonly LedgerEntry[] {
    const found = identities.flatMap((identity) => this.#byValue.of(bareValue(identity)));
    return [...new Set(found)].map(({ entry }) => entry);
  }

  /**
   * Returns the entry of a request's uuid and mac; undefined if there is none, or if it does not count for all of them
   * (`recognised`).
   * @param listed the identities of the machine's Machine; undefined without one.
   */
  soleOf(request: Labels, listed: readonly string[] | undefined): IndexedEntry | undefined {
    const byUuid = this.#byValue.slot(request.get("uuid") ?? "");
    const byMac = this.#byValue.slot(request.get("mac") ?? "");
    const found = byUuid ?? byMac;
    if (found === undefined || found instanceof Several) return undefined;
    // The usual entry has both.
    if (byUuid === byMac) return found;
    if (byUuid !== undefined && byMac !== undefined) return undefined;
    const { isClear } = recognised({ identities: identitiesOf(request), ...(listed && { listed }) }, this);
    return isClear ? found : undefined;
  }
}

function bareValue(identity: string): string {
  return identity.slice(identity.indexOf("/") + 1);
}
