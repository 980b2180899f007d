/**
 * Shares a limited amount among holders. A holder may not hold more than remains free: a single holder gets half, each
 * of three gets a quarter, and a small holder nearly always finds room. So nothing is refused before half is in use,
 * and then the largest holders are refused first.
 */

export class Shares {
  readonly #limit: number;
  readonly #held = new Map<string, number>();
  #total = 0;

  /** @param limit the whole amount, in any unit. */
  constructor({ limit }: { readonly limit: number }) {
    this.#limit = limit;
  }

  /** The sum of all shares. */
  get total(): number {
    return this.#total;
  }

  /** Returns a holder's share. */
  heldBy(holder: string): number {
    return this.#held.get(holder) ?? 0;
  }

  /** The holder with the largest share, and this share; undefined if nobody has a share. */
  get largest(): readonly [holder: string, amount: number] | undefined {
    let largest: readonly [string, number] | undefined;
    for (const each of this.#held) if (each[1] > (largest?.[1] ?? 0)) largest = each;
    return largest;
  }

  /** True if a holder may take this much more. @param holder undefined for a holder that only the total limits. */
  admits(holder: string | undefined, amount = 1): boolean {
    const free = this.#limit - this.#total - amount;
    if (free < 0) return false;
    return holder === undefined || this.heldBy(holder) <= free;
  }

  /** Adds an amount if `admits` allows it. @returns false otherwise. */
  take(holder: string | undefined, amount = 1): boolean {
    if (!this.admits(holder, amount)) return false;
    this.add(holder, amount);
    return true;
  }

  /** Adds an amount even if `admits` does not allow it. */
  add(holder: string | undefined, amount: number): void {
    this.#total += amount;
    if (holder !== undefined) this.#held.set(holder, this.heldBy(holder) + amount);
  }

  /** Subtracts an amount that was taken or added. */
  release(holder: string | undefined, amount = 1): void {
    this.#total -= amount;
    if (holder === undefined) return;
    const left = this.heldBy(holder) - amount;
    if (left > 0) this.#held.set(holder, left);
    else this.#held.delete(holder);
  }
}
