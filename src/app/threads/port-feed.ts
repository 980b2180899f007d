/** The documents of the first thread, as a feed of a boot thread. All documents of a store come in several parts. */

import type { Feed, FeedListener } from "../../model/feed.ts";
import type { ToThread } from "./wire.ts";

export class PortFeed implements Feed {
  readonly #listeners = new Set<FeedListener>();
  /** The documents that have arrived, until the last part is there. */
  #parts: (readonly [path: string, text: string])[] = [];
  #isFilled = false;
  /** When the documents were last proven, on the monotonic clock; undefined before the first proof. */
  provenAtMs: number | undefined;

  /** True if all documents have arrived. */
  get isFilled(): boolean {
    return this.#isFilled;
  }

  /** Call it before the first documents arrive: the feed keeps none. Every document is below `prefix`. */
  follow(_prefix: string, listener: FeedListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  take(message: Extract<ToThread, { kind: "documents" | "changes" }>): void {
    if (message.kind === "documents") this.#takePart(message);
    else for (const listener of this.#listeners) listener.changed(message.changes);
  }

  #takePart({ documents, isLast }: Extract<ToThread, { kind: "documents" }>): void {
    for (const document of documents) this.#parts.push(document);
    if (!isLast) return;
    const all = this.#parts;
    this.#parts = [];
    this.#isFilled = true;
    // A proof is valid only for the documents before it. The new ones may be older, from a restored store.
    this.provenAtMs = undefined;
    for (const listener of this.#listeners) listener.replaced(all);
  }
}
