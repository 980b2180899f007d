/**
 * Holds the controller's documents as the store has them. It follows the store's changes, and writes each step as one
 * batch.
 */

import type { DocumentChange } from "../../model/feed.ts";
import { parseJsonObject } from "../../model/json.ts";
import type { DocumentEdit, EditAudit } from "../../model/objects/audit.ts";
import {
  davitRoot,
  decodeSynced,
  decodeTombstone,
  documentAddress,
  type SyncedDocument,
  syncedPath,
  tombstonesRoot,
  versionsPath,
} from "../../model/objects/documents.ts";
import type { Source, SourceVersions } from "../../model/objects/source.ts";
import type { SingleCommand } from "../../store/command/command.ts";
import { storePath } from "../../store/core/node.ts";
import type { Store } from "../../store/store.ts";
import { objectAt, StoredDocuments, StoredSecrets, type StoredTexts } from "./stored-documents.ts";

/**
 * A document's new text; undefined to remove the document. If `ttlSeconds` is set, the document expires after this
 * time.
 */
export interface DocumentWrite extends DocumentChange {
  readonly ttlSeconds?: number;
}

export class Documents extends StoredDocuments {
  readonly #store: Store;
  readonly #source: Pick<Source, "versions" | "writerOf">;
  readonly #audit: EditAudit | undefined;
  /** Edits whose write failed, by path: the store may take them nevertheless, after a lost connection to etcd. */
  readonly #doubtful = new Map<string, DocumentEdit>();
  #unfollow: (() => void) | undefined;

  constructor(
    store: Store,
    source: Pick<Source, "versions" | "writerOf"> = {},
    audit?: EditAudit,
    secretTexts?: StoredTexts,
  ) {
    super(() => store.indexes.storeIndex, new StoredSecrets(secretTexts));
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

  synced(): SyncedDocument | undefined {
    const text = this.textAt(syncedPath);
    return text === undefined ? undefined : decodeSynced(text);
  }

  /** The versions of the source from which the store's documents are, or later ones. */
  versions(): SourceVersions {
    const entries = Object.entries(parseJsonObject(this.textAt(versionsPath) ?? "{}") ?? {});
    return Object.fromEntries(entries.flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : [])));
  }

  /** The paths of all tombstones. */
  tombstones(): readonly string[] {
    return [...this.texts.keys()].filter((path) => path.startsWith(`${tombstonesRoot}/`));
  }

  /** The namespaces of the removed objects that the tombstone at a path records. */
  namespacesAt(path: string): readonly string[] {
    const address = documentAddress(path);
    if (address?.kind === "goneProfile" || address?.kind === "goneMachine") return [address.namespace];
    return (decodeTombstone(this.textAt(path) ?? "")?.ranks ?? []).flatMap((rank) => rank?.namespace ?? []);
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
    const stored = changes.map((change) => this.secrets.asStored(change));
    try {
      await this.#store.submit({ kind: "batch", commands: [...stored, ...this.#versionsWrite()].map(toCommand) });
    } catch (error) {
      for (const edit of edits) this.#doubtful.set(edit.path, edit);
      for (const { path } of edits) this.#settle(path, this.textAt(path));
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
      const before = this.textAt(path);
      const name = objectAt(path);
      return before === after || name === undefined
        ? []
        : [{ path, before, after, writer: this.#source.writerOf?.(name) }];
    });
  }

  #versionsWrite(): readonly DocumentWrite[] {
    const { versions } = this.#source;
    const text = JSON.stringify(versions);
    return versions === undefined || text === this.textAt(versionsPath) ? [] : [{ path: versionsPath, text }];
  }

  protected override take(path: string, text: string | undefined): void {
    if (this.#doubtful.size > 0) this.#settle(path, text);
    super.take(path, text);
  }

  /** Reports an edit that the store has taken, although its write failed. */
  #settle(path: string, text: string | undefined): void {
    const edit = this.#doubtful.get(path);
    if (edit === undefined || edit.before === text) return;
    this.#doubtful.delete(path);
    if (edit.after === text) this.#edited([edit]);
  }
}

function toCommand({ path: text, text: value, ttlSeconds }: DocumentWrite): SingleCommand {
  const path = storePath(text);
  if (value === undefined) return { kind: "delete", path };
  return { kind: "set", path, value, ...(ttlSeconds !== undefined && { ttlSeconds }) };
}
