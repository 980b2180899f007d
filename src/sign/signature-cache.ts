/**
 * Keeps the signatures of one key by what they sign, so that a repeated body costs a hash, and everybody who asks for the
 * same one while it is made gets the same. The least recently used go first. A failure is not kept.
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

  /** What was made for this body, if it is still there. */
  find(digest: string): DetachedSignature | undefined {
    const known = this.#made.get(digest);
    if (known === undefined) return undefined;
    this.#made.delete(digest);
    this.#made.set(digest, known);
    return known;
  }

  /**
   * What is being made for this body, or what `make` begins to make, kept from then on.
   * @param joined is called when somebody else began it.
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
