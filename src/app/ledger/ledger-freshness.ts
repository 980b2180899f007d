/** How old a copy of the ledger is. A suspension of the computer makes it older, as for objects. */

import { Freshness } from "../../boot/selection/freshness.ts";
import type { Clock } from "../../lib/clock.ts";
import { Suspensions } from "../../lib/suspension.ts";

/** @param provenAtMs up to when the copy is complete, on the monotonic clock; undefined if that is not known. */
export function ledgerFreshness(
  clock: Clock,
  { installMaxSourceAgeMs }: { readonly installMaxSourceAgeMs: number },
  provenAtMs: () => number | undefined,
): Freshness {
  const suspensions = new Suspensions(clock);
  const freshness = new Freshness({ clock, installMaxSourceAgeMs });
  freshness.provenBy(() => suspensions.corrected(provenAtMs()));
  return freshness;
}
