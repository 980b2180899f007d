/**
 * Caches the signatures of one key by the hash of the signed body. A repeated body costs only a hash. Requests for a
 * signature that is being made wait for the same one. The least recently used signatures are dropped first. A failure
 * is not cached.
 */

import { LRUCache } from "lru-cache";
import type { DetachedSignature } from "./detached.ts";

interface SignatureCacheOptions {
  readonly maxCount: number;
  /** The most bytes of signatures, in both of their forms. The hashes of bodies are not counted. */
  readonly maxBytes: number;
}

export class SignatureCache {
  readonly #made: LRUCache<string, DetachedSignature>;
  readonly #inTheMaking = new Map<string, Promise<DetachedSignature>>();

  constructor({ maxCount, maxBytes }: SignatureCacheOptions) {
    const sizeCalculation = ({ binary, armored }: DetachedSignature) => binary.length + armored.length;
    this.#made = new LRUCache({ max: maxCount, maxSize: maxBytes, sizeCalculation });
  }

  /** How many signatures are cached now. */
  get count(): number {
    return this.#made.size;
  }

  /** How many bytes of signatures are cached now. */
  get sizeBytes(): number {
    return this.#made.calculatedSize;
  }

  /** Returns the signature of the body with this hash; undefined if it is not cached. */
  find(digest: string): DetachedSignature | undefined {
    return this.#made.get(digest);
  }

  /**
   * Returns the signature of the body with this hash. If none is being made yet, it calls `make` and caches the result.
   * @param joined called if another request already began to make the signature.
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
