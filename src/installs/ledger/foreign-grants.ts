/** Reports grants that name another ledger than the present one: a new ledger has begun since they were made. */

import { toRfc3339 } from "../../lib/clock.ts";
import type { NamedGrant } from "../../model/permits/permit.ts";
import type { KnownLedger } from "./known-ledger.ts";

type ForeignLedger = Pick<KnownLedger, "id" | "meta" | "isUsed" | "nowMs">;

/**
 * Returns the line for the operator; undefined if every grant names the present ledger. Grants that are over count only
 * while the ledger is unused. Later they are ignored.
 */
export function foreignGrants(ledger: ForeignLedger, grants: readonly NamedGrant[]): string | undefined {
  const { id, meta, isUsed, nowMs } = ledger;
  if (id === undefined || meta === undefined) return undefined;
  const others = grants.filter(({ grant: { ledger: named, untilMs } }) => {
    const isOver = untilMs !== undefined && untilMs <= nowMs;
    return named !== undefined && named !== id && !(isUsed && isOver);
  });
  const [first] = others;
  if (first === undefined) return undefined;
  const which = others.length === 1 ? `${first.key} names` : `${others.length} grants, such as of ${first.key}, name`;
  const began = toRfc3339(meta.beganAtMs).replace(/\.\d+Z$/, "Z");
  const cure = "adopt the machines that are installed (davit machine adopt), then grant again (davit machine install)";
  return `Ledger: ${id} began at ${began}, and ${which} another ledger, which opens no install: ${cure}`;
}
