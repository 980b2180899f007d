/**
 * Writes the mark `/davit/synced`, which says that the source's first list is in the store, and whether part of the
 * source cannot be read now.
 */

import { type Clock, toRfc3339 } from "../lib/clock.ts";
import { encodeDocument, type SyncedDocument, syncedPath } from "../model/objects/documents.ts";
import type { Source } from "../model/objects/source.ts";
import type { Documents, DocumentWrite } from "./core/documents.ts";

export interface SyncMarkOptions {
  readonly source: Pick<Source, "kind" | "view">;
  readonly documents: Pick<Documents, "synced" | "contents">;
  readonly clock: Pick<Clock, "nowMs">;
  readonly sha256: (text: string) => string;
  /** Returns false if the store refused the write. */
  readonly write: (write: DocumentWrite) => Promise<boolean>;
}

export class SyncMark {
  readonly #options: SyncMarkOptions;

  constructor(options: SyncMarkOptions) {
    this.#options = options;
  }

  /** True if the store is marked as half, and the view is not half any more. */
  get isHalfOver(): boolean {
    const { source, documents } = this.#options;
    return documents.synced()?.half === true && !source.view.isHalf;
  }

  /** Writes the mark, so that machines are answered. @returns false if the store refused it. */
  async synced(sawWholeView: boolean, sawHalf: boolean): Promise<boolean> {
    const { source, clock, sha256, documents } = this.#options;
    const before = documents.synced();
    const revision = sha256(JSON.stringify(documents.contents()));
    const complete = sawWholeView || before?.complete === true;
    const half = sawHalf || source.view.isHalf ? { half: true as const } : {};
    const isSame = before?.revision === revision && before.complete === complete && before.half === half.half;
    if (isSame && before.source === source.kind) return true;
    return await this.#write({ source: source.kind, at: toRfc3339(clock.nowMs()), revision, complete, ...half });
  }

  /** Marks the store as half if the view is half. @returns false if the store refused it. */
  async half(): Promise<boolean> {
    const { source, documents } = this.#options;
    const before = documents.synced();
    const isMarked = before === undefined || before.half === true || !source.view.isHalf;
    return isMarked || (await this.#write({ ...before, half: true }));
  }

  async #write(mark: SyncedDocument): Promise<boolean> {
    return await this.#options.write({ path: syncedPath, text: encodeDocument(mark) });
  }
}
