/**
 * Keeps the signatures of one key by the signed body. A repeated body costs only a hash, and requests for a signature
 * that is being made share it. The least recently used are dropped first. A failure is not kept.
 */

import type { DetachedSignature } from "./detached.ts";

export interface SignatureCacheOptions {
  readonly maxCount: number;
  /** Of the signatures in both forms; the names of bodies come on top. */
  readonly maxBytes: number;
}

export class SignatureCache {
  readonly #options: SignatureCacheOptions;
  /** In order of last use, oldest first: a Map keeps the order of insertion. */
  readonly #made = new Map<string, DetachedSignature>();
  readonly #inTheMaking = new Map<string, Promise<DetachedSignature>>();
  #sizeBytes = 0;

  constructor(options: SignatureCacheOptions) {
    this.#options = options;
  }

  /** Signatures kept now. */
  get count(): number {
    return this.#made.size;
  }

  /** Bytes of signatures kept now. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** The signature of this body, if it is still kept. */
  find(digest: string): DetachedSignature | undefined {
    const known = this.#made.get(digest);
    if (known === undefined) return undefined;
    this.#made.delete(digest);
    this.#made.set(digest, known);
    return known;
  }

  /**
   * The signature of this body that is being made, or one that `make` begins to make; it is kept.
   * @param joined is called when another request began it.
   */
  add(digest: string, make: () => Promise<DetachedSignature>, joined?: () => void): Promise<DetachedSignature> {
    const begun = this.#inTheMaking.get(digest);
    if (begun !== undefined) {
      joined?.();
      return begun;
    }
    const making = this.#keep(digest, make);
    this.#inTheMaking.set(digest, making);
    return making;
  }

  async #keep(digest: string, make: () => Promise<DetachedSignature>): Promise<DetachedSignature> {
    try {
      const signature = await make();
      this.#made.set(digest, signature);
      this.#sizeBytes += bytesOf(signature);
      this.#evict();
      return signature;
    } finally {
      this.#inTheMaking.delete(digest);
    }
  }

  #evict(): void {
    const { maxCount, maxBytes } = this.#options;
    for (const [digest, signature] of this.#made) {
      if (this.#made.size <= maxCount && this.#sizeBytes <= maxBytes) return;
      this.#made.delete(digest);
      this.#sizeBytes -= bytesOf(signature);
    }
  }
}

function bytesOf({ binary, armored }: DetachedSignature): number {
  return binary.length + armored.length;
}
