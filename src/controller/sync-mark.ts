/**
 * Writes the mark `/davit/synced`, which says that the source's first list is in the store, and which doubts
 * the view has now: part of the source cannot be read, or changes of it are not in the view yet.
 */

import { toRfc3339 } from "../lib/clock.ts";
import { encodeDocument, type SyncedDocument, syncedPath } from "../model/objects/documents.ts";
import type { ControllerOptions } from "./controller-options.ts";
import type { Documents, DocumentWrite } from "./core/documents.ts";

interface SyncMarkOptions extends Pick<ControllerOptions, "source" | "clock" | "sha256"> {
  readonly documents: Pick<Documents, "synced" | "contents">;
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

  /** True if the view is half and the store is not marked so, or if only one of them is changing. */
  get isDue(): boolean {
    const { source, documents } = this.#options;
    const { half = false, changing = false } = documents.synced() ?? {};
    const { isHalf, isChanging = false } = source.view;
    return (isHalf && !half) || isChanging !== changing;
  }

  /** Writes the mark, so that machines are answered. @returns false if the store refused it. */
  async synced(sawWholeView: boolean, sawHalf: boolean): Promise<boolean> {
    const { source, clock, sha256, documents } = this.#options;
    const before = documents.synced();
    const revision = sha256(JSON.stringify(documents.contents()));
    const complete = sawWholeView || before?.complete === true;
    const half = sawHalf || source.view.isHalf ? { half: true as const } : {};
    const changing = before?.changing || source.view.isChanging ? { changing: true as const } : {};
    const isSame = before?.revision === revision && before.complete === complete && before.half === half.half;
    if (isSame && before.source === source.kind) return true;
    const at = toRfc3339(clock.nowMs());
    return await this.#write({ source: source.kind, at, revision, complete, ...half, ...changing });
  }

  /** Marks the store as half or changing if the view is. @returns false if the store refused it. */
  async doubted(): Promise<boolean> {
    const { source, documents } = this.#options;
    const { isHalf, isChanging } = source.view;
    const before = documents.synced();
    const isMarked = before === undefined || ((before.half || !isHalf) && (before.changing || !isChanging));
    if (isMarked) return true;
    return await this.#write({ ...before, ...(isHalf && { half: true }), ...(isChanging && { changing: true }) });
  }

  /** Ends the mark of changes. Call it when all of the view is in the store. @returns false if the store refused it. */
  async changed(): Promise<boolean> {
    const { source, documents } = this.#options;
    const before = documents.synced();
    if (before?.changing !== true || source.view.isChanging) return true;
    const { changing: _, ...mark } = before;
    return await this.#write(mark);
  }

  async #write(mark: SyncedDocument): Promise<boolean> {
    return await this.#options.write({ path: syncedPath, text: encodeDocument(mark) });
  }
}
