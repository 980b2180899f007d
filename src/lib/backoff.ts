/**
 * Computes the wait before a retry. The wait grows with each failure. `jittered` adds a random part, so that clients
 * that failed together do not retry together.
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
