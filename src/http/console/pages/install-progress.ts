/** How far install grants have come: how many machines each has installed, and how many have not begun. Pure. */

import { hasSpent, type InstallState, type LedgerEntry, type NamedGrant } from "../../../model/permits/permit.ts";
import type { MachineBook } from "../../ops/machine-book.ts";
import { grantJson } from "../../ops/machine-report.ts";
import { type Html, html } from "../html/html.ts";
import type { FleetRow } from "../state/fleet.ts";

/** Counts the machines of one generation of a grant. */
export interface GrantProgress {
  installed: number;
  installing: number;
  failed: number;
  /** Machines that the grant may still install. */
  remaining: number;
  /** Machines that an earlier install has installed, and that the grant does not install again. */
  before: number;
}

/** The part of a machine's row that says whose machine it is. */
type GrantedRow = Pick<FleetRow, "group" | "object" | "entries">;

const outcomes: Readonly<Record<InstallState, "installed" | "installing" | "failed">> = {
  Claimed: "installing",
  Installing: "installing",
  Installed: "installed",
  Failed: "failed",
  Unconfirmed: "failed",
};

/**
 * Returns the progress of each grant, by its key. A machine that has spent the grant counts, even if it belongs to
 * another Group now.
 */
export function progressOf(
  grants: readonly NamedGrant[],
  rows: readonly GrantedRow[],
): ReadonlyMap<string, GrantProgress> {
  const found = new Map(
    grants.map(({ key }) => [key, { installed: 0, installing: 0, failed: 0, remaining: 0, before: 0 }]),
  );
  if (grants.length === 0) return found;
  const byKey = new Map(grants.map((named) => [named.key, named]));
  for (const row of rows) {
    for (const key of keysOf(row)) {
      const named = byKey.get(key);
      const progress = found.get(key);
      const counted = named && countedAs(row, named);
      if (progress !== undefined && counted !== undefined) progress[counted] += 1;
    }
  }
  return found;
}

function ownKeys({ group, object }: GrantedRow): readonly string[] {
  return [...(group === undefined ? [] : [`group/${group}`]), ...(object === undefined ? [] : [`machine/${object}`])];
}

function keysOf(row: GrantedRow): ReadonlySet<string> {
  return new Set([...ownKeys(row), ...row.entries.flatMap(({ spent }) => Object.keys(spent))]);
}

function countedAs(row: GrantedRow, { key, grant }: NamedGrant): keyof GrantProgress | undefined {
  const isOwn = ownKeys(row).includes(key);
  const spent = row.entries.find((entry) =>
    isOwn ? hasSpent(entry, { key, grant }) : (entry.spent[key] ?? 0) >= grant.generation,
  );
  if (spent !== undefined) return outcomes[spent.state];
  if (!isOwn) return undefined;
  return grant.scope === "NeverInstalled" && row.entries.some(isInstalled) ? "before" : "remaining";
}

function isInstalled({ state }: LedgerEntry): boolean {
  return state === "Installed" || state === "Unconfirmed";
}

/** Returns a bar with its counts in words. */
export function progressHtml(progress: GrantProgress | undefined, named: NamedGrant, book: MachineBook): Html {
  const { generation, isOpen, until, why } = grantJson(book.ledger, named);
  const state = isOpen ? `open until ${until}` : why;
  const { installed = 0, installing = 0, failed = 0, remaining = 0, before = 0 } = progress ?? {};
  const all = installed + installing + failed + remaining;
  const counts = [
    `${installed} of ${all} installed`,
    ...(installing > 0 ? [`${installing} installing`] : []),
    ...(failed > 0 ? [`${failed} failed or not confirmed`] : []),
    ...(remaining > 0 ? [`${remaining} not begun`] : []),
    ...(before > 0 ? [`${before} installed before`] : []),
  ].join(", ");
  const label = `Installed machines of ${named.key}, generation ${generation}`;
  const bar = all > 0 && html`<progress max="${all}" value="${installed}" aria-label="${label}"></progress><br>`;
  return html`${bar}${all === 0 && before === 0 ? "no machine yet" : counts}<br>
<small>generation ${generation}, ${state}</small>`;
}
