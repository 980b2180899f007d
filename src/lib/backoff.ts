/** How long to wait before a retry: longer with each failure, and never the same for clients that failed together. */

/** The wait before retry number `attempt` (from 0): doubling from `firstMs`, never above `capMs`. */
export function backoffMs(
  attempt: number,
  { firstMs, capMs }: { readonly firstMs: number; readonly capMs: number },
): number {
  return Math.min(firstMs * 2 ** attempt, capMs);
}

/** A random wait between `waitMs` and twice that. */
export function jittered(waitMs: number, random: () => number): number {
  return waitMs * (1 + random());
}
