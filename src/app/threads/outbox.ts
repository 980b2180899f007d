/**
 * Sends messages to a boot thread in order. All documents of a store go in slices, so that copying 100,000 of them does
 * not delay the answers of the first thread. Later messages wait until all slices are sent.
 */

import type { DocumentChange, FeedListener } from "../../model/feed.ts";
import type { FeedName, ToThread } from "./wire.ts";

/** Copying this many documents takes one or two milliseconds. */
const sliceSize = 500;

export class Outbox {
  readonly #send: (message: ToThread) => void;
  #waiting: ToThread[] = [];
  #isClosed = false;

  constructor(send: (message: ToThread) => void) {
    this.#send = send;
  }

  post(message: ToThread): void {
    if (this.#isClosed) return;
    if (this.#waiting.length === 0) this.#send(message);
    else this.#waiting.push(message);
  }

  /** Returns a listener that sends what a feed reports. */
  listener(feed: FeedName): FeedListener {
    return {
      replaced: (texts) => this.#postAll(feed, [...texts]),
      changed: (changes: readonly DocumentChange[]) => this.post({ kind: "changes", feed, changes }),
    };
  }

  /** Drops the messages that wait, and all later ones. */
  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
  }

  #postAll(feed: FeedName, all: readonly (readonly [string, string])[]): void {
    if (this.#isClosed) return;
    const isFirst = this.#waiting.length === 0;
    for (let at = 0; at === 0 || at < all.length; at += sliceSize) {
      const isLast = at + sliceSize >= all.length;
      this.#waiting.push({ kind: "documents", feed, documents: all.slice(at, at + sliceSize), isLast });
    }
    if (isFirst) setImmediate(() => this.#work());
  }

  #work(): void {
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#send(next);
    if (this.#waiting.length > 0) setImmediate(() => this.#work());
  }
}
