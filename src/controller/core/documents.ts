/**
 * Holds the controller's documents as the store has them. It follows the store's changes, and writes each step as one
 * batch.
 */

import type { DocumentEdit, EditAudit } from "../../model/audit.ts";
import {
  davitRoot,
  decodeGroup,
  decodeProfile,
  decodeSynced,
  decodeTombstone,
  documentAddress,
  type GroupDocument,
  groupPath,
  groupsRoot,
  machinePath,
  machinesRoot,
  ownerName,
  type ProfileDocument,
  profilePath,
  profilesRoot,
  type SyncedDocument,
  syncedPath,
  tombstonesRoot,
  versionsPath,
} from "../../model/documents.ts";
import type { DocumentChange, FeedListener } from "../../model/feed.ts";
import { parseJsonObject } from "../../model/json.ts";
import { decodeMachine, type MachineDocument } from "../../model/machine.ts";
import type { ObjectName, OwnName, Source, SourceVersions } from "../../model/source.ts";
import type { SingleCommand } from "../../store/command/command.ts";
import { storePath } from "../../store/core/node.ts";
import type { Store } from "../../store/store.ts";

/**
 * A document's new text; undefined to remove the document. If `ttlSeconds` is set, the document expires after this
 * time.
 */
export interface DocumentWrite extends DocumentChange {
  readonly ttlSeconds?: number;
}

/** What the store holds of a Profile now. */
export interface StoredProfile {
  readonly document: ProfileDocument | undefined;
  /** Hashes of its stored secret texts. */
  readonly secrets: readonly string[];
}

export class Documents implements FeedListener {
  readonly #store: Store;
  readonly #source: Pick<Source, "versions" | "writerOf">;
  readonly #audit: EditAudit | undefined;
  readonly #texts = new Map<string, string>();
  /** Hashes of the stored secret texts, by namespace/profile. */
  readonly #secrets = new Map<string, Set<string>>();
  /**
   * `complete` of the stored sync mark. It is decoded when the mark changes, because every Group of a step reads it.
   */
  #isComplete = false;
  /** Edits whose write failed, by path: the store may take them nevertheless, after a lost connection to etcd. */
  readonly #doubtful = new Map<string, DocumentEdit>();
  #unfollow: (() => void) | undefined;

  constructor(store: Store, source: Pick<Source, "versions" | "writerOf"> = {}, audit?: EditAudit) {
    this.#store = store;
    this.#source = source;
    this.#audit = audit;
  }

  start(): void {
    this.#unfollow = this.#store.follow(davitRoot, this);
  }

  stop(): void {
    this.#unfollow?.();
  }

  replaced(documents: Iterable<readonly [path: string, text: string]>): void {
    this.#texts.clear();
    this.#secrets.clear();
    this.#isComplete = false;
    for (const [path, text] of documents) this.#take(path, text);
  }

  changed(changes: readonly DocumentChange[]): void {
    for (const { path, text } of changes) this.#take(path, text);
  }

  /**
   * The index for claims made now: the store's index. It is 0 until the whole source was read once, because a part that
   * is read late may hold the older Groups. So all claims that are made before that are equally old.
   */
  get claimIndex(): number {
    return this.#isComplete ? this.#store.indexes.storeIndex : 0;
  }

  profile(namespace: string, name: string): StoredProfile {
    const text = this.#texts.get(profilePath(namespace, name));
    const secrets = [...(this.#secrets.get(`${namespace}/${name}`) ?? [])];
    return { document: text === undefined ? undefined : decodeProfile(text), secrets };
  }

  group(namespace: string, name: string): GroupDocument | undefined {
    const text = this.#texts.get(groupPath(namespace, name));
    return text === undefined ? undefined : decodeGroup(text);
  }

  machine(namespace: string, name: string): MachineDocument | undefined {
    const text = this.#texts.get(machinePath(namespace, name));
    return text === undefined ? undefined : decodeMachine(text);
  }

  synced(): SyncedDocument | undefined {
    const text = this.#texts.get(syncedPath);
    return text === undefined ? undefined : decodeSynced(text);
  }

  /** The versions of the source from which the store's documents are, or later ones. */
  versions(): SourceVersions {
    const entries = Object.entries(parseJsonObject(this.#texts.get(versionsPath) ?? "{}") ?? {});
    return Object.fromEntries(entries.flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : [])));
  }

  /** The names of all Profiles, Groups and Machines that have a document. A Group with a twin is returned twice. */
  *names(): Iterable<ObjectName> {
    for (const path of this.#texts.keys()) {
      const name = objectAt(path);
      if (name !== undefined) yield name;
    }
  }

  /** The paths of all tombstones. */
  tombstones(): readonly string[] {
    return [...this.#texts.keys()].filter((path) => path.startsWith(`${tombstonesRoot}/`));
  }

  /** The namespaces of the removed objects that the tombstone at a path records. */
  namespacesAt(path: string): readonly string[] {
    const address = documentAddress(path);
    if (address?.kind === "goneProfile" || address?.kind === "goneMachine") return [address.namespace];
    return (decodeTombstone(this.#texts.get(path) ?? "")?.ranks ?? []).flatMap((rank) => rank?.namespace ?? []);
  }

  /** The text at a path; undefined for a secret's text. */
  textAt(path: string): string | undefined {
    return this.#texts.get(path);
  }

  /** Path and text of every document of an object, sorted by path. A sync's revision is their hash. */
  contents(): readonly (readonly [path: string, text: string])[] {
    const own = [...this.#texts].filter(([path]) => isObjectPath(path));
    return own.toSorted(([a], [b]) => (a < b ? -1 : 1));
  }

  /**
   * Writes all changes as one batch, together with the newest versions of the source. Resolves when they are on disk
   * and applied.
   * @throws {StoreError} when the store refuses the batch, for example because it takes no writes now.
   */
  async write(changes: readonly DocumentWrite[]): Promise<void> {
    if (changes.length === 0) return;
    const edits = this.#audit === undefined ? [] : this.#editsOf(changes);
    for (const { path } of edits) this.#doubtful.delete(path);
    try {
      await this.#store.submit({ kind: "batch", commands: [...changes, ...this.#versionsWrite()].map(toCommand) });
    } catch (error) {
      for (const edit of edits) this.#doubtful.set(edit.path, edit);
      for (const { path } of edits) this.#settle(path, this.#texts.get(path));
      throw error;
    }
    this.#edited(edits);
  }

  #edited(edits: readonly DocumentEdit[]): void {
    if (edits.length > 0) this.#audit?.edited(edits, (path) => this.textAt(path));
  }

  /** What the changes of objects are, for the audit log. It only keeps references: parsing is not for this moment. */
  #editsOf(changes: readonly DocumentWrite[]): readonly DocumentEdit[] {
    return changes.flatMap(({ path, text: after }) => {
      const before = this.#texts.get(path);
      if (before === after || !isObjectPath(path)) return [];
      const name = objectAt(path);
      return [{ path, before, after, writer: name && this.#source.writerOf?.(name) }];
    });
  }

  #versionsWrite(): readonly DocumentWrite[] {
    const { versions } = this.#source;
    const text = JSON.stringify(versions);
    return versions === undefined || text === this.#texts.get(versionsPath) ? [] : [{ path: versionsPath, text }];
  }

  #take(path: string, text: string | undefined): void {
    if (this.#doubtful.size > 0) this.#settle(path, text);
    const address = documentAddress(path);
    if (address?.kind === "synced") this.#isComplete = decodeSynced(text ?? "")?.complete === true;
    if (address?.kind === "secret") {
      this.#takeSecret(`${address.namespace}/${address.profile}`, address.sha256, text !== undefined);
    } else if (text === undefined) {
      this.#texts.delete(path);
    } else {
      this.#texts.set(path, text);
    }
  }

  /** Reports an edit that the store has taken, although its write failed. */
  #settle(path: string, text: string | undefined): void {
    const edit = this.#doubtful.get(path);
    if (edit === undefined || edit.before === text) return;
    this.#doubtful.delete(path);
    if (edit.after === text) this.#edited([edit]);
  }

  #takeSecret(profile: string, sha256: string, isThere: boolean): void {
    const hashes = this.#secrets.get(profile) ?? new Set();
    if (isThere) hashes.add(sha256);
    else hashes.delete(sha256);
    if (hashes.size === 0) this.#secrets.delete(profile);
    else this.#secrets.set(profile, hashes);
  }
}

/** Returns the object whose document is at a path; for a twin its Group. */
function objectAt(path: string): OwnName | undefined {
  const address = documentAddress(path);
  if (address?.kind === "profile") return { kind: "Profile", namespace: address.namespace, name: address.name };
  if (address?.kind === "machine") return { kind: "Machine", namespace: address.namespace, name: address.name };
  if (address?.kind !== "group") return undefined;
  return { kind: "Group", namespace: address.namespace, name: ownerName(address.name) };
}

function isObjectPath(path: string): boolean {
  return [profilesRoot, groupsRoot, machinesRoot].some((root) => path.startsWith(`${root}/`));
}

function toCommand({ path: text, text: value, ttlSeconds }: DocumentWrite): SingleCommand {
  const path = storePath(text);
  if (value === undefined) return { kind: "delete", path };
  return { kind: "set", path, value, ...(ttlSeconds !== undefined && { ttlSeconds }) };
}
