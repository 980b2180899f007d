/**
 * Keeps the signatures of one key by the signed body. A repeated body costs only a hash, and requests for a signature
 * that is being made share it. The least recently used are dropped first. A failure is not kept.
 */

import { LRUCache } from "lru-cache";
import type { DetachedSignature } from "./detached.ts";

export interface SignatureCacheOptions {
  readonly maxCount: number;
  /** Of the signatures in both forms; the names of bodies come on top. */
  readonly maxBytes: number;
}

export class SignatureCache {
  readonly #made: LRUCache<string, DetachedSignature>;
  readonly #inTheMaking = new Map<string, Promise<DetachedSignature>>();

  constructor({ maxCount, maxBytes }: SignatureCacheOptions) {
    const sizeCalculation = ({ binary, armored }: DetachedSignature) => binary.length + armored.length;
    this.#made = new LRUCache({ max: maxCount, maxSize: maxBytes, sizeCalculation });
  }

  /** Signatures kept now. */
  get count(): number {
    return this.#made.size;
  }

  /** Bytes of signatures kept now. */
  get sizeBytes(): number {
    return this.#made.calculatedSize;
  }

  /** The signature of this body, if it is still kept. */
  find(digest: string): DetachedSignature | undefined {
    return this.#made.get(digest);
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
      return signature;
    } finally {
      this.#inTheMaking.delete(digest);
    }
  }
}
