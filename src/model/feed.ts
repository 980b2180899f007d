/**
 * The port through which the boot service follows documents. The store in the same process implements it, and so does
 * a client that follows a store over HTTP.
 */

/** A change of a document: its new text, or undefined if it was removed. */
export interface DocumentChange {
  readonly path: string;
  readonly text: string | undefined;
}

export interface FeedListener {
  /** Called with all documents. They replace everything that the listener knew. */
  replaced(documents: Iterable<readonly [path: string, text: string]>): void;
  /**
   * Called with all changes of one index of the store, in the order of the indexes. The changes take effect together,
   * so that nobody sees only some of them.
   */
  changed(changes: readonly DocumentChange[]): void;
}

export interface Feed {
  /**
   * Hands every document below `prefix` to `listener.replaced`, then each later change, without a gap.
   * @returns a function that ends these calls.
   */
  follow(prefix: string, listener: FeedListener): () => void;
}
