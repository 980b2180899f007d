/**
 * Computes the wait before a retry. It grows with each failure, and a random part keeps clients that failed together
 * from retrying together.
 */

/** Returns the wait before retry number `attempt`, from 0: `firstMs`, doubled with each attempt, up to `capMs`. */
export function backoffMs(
  attempt: number,
  { firstMs, capMs }: { readonly firstMs: number; readonly capMs: number },
): number {
  return Math.min(firstMs * 2 ** attempt, capMs);
}

/** Returns a random wait between `waitMs` and twice `waitMs`. */
export function jittered(waitMs: number, random: () => number): number {
  return waitMs * (1 + random());
}
