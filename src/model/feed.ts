/**
 * The port through which the boot service follows documents. The store in the same process implements it, and so does
 * a client that follows a store over HTTP.
 */

/** A document's new text, or undefined after its removal. */
export interface DocumentChange {
  readonly path: string;
  readonly text: string | undefined;
}

export interface FeedListener {
  /** Replaces everything known by these documents. */
  replaced(documents: Iterable<readonly [path: string, text: string]>): void;
  /** Changes of one index: they are one step, so that nobody sees half of it. Steps come in order of their indexes. */
  changed(changes: readonly DocumentChange[]): void;
}

export interface Feed {
  /**
   * Hands every document below `prefix` to `listener.replaced`, then each later change, without a gap.
   * @returns a function that stops this.
   */
  follow(prefix: string, listener: FeedListener): () => void;
}
