/** What may be removed from a ledger: pure functions. Forgetting a machine opens no grant. */

import type { LedgerEntry, LedgerView, NamedGrant } from "../../model/permits/permit.ts";
import type { SingleCommand } from "../../store/command/command.ts";
import { change, type EntryWriting, isOpen, spentWith } from "./claim.ts";
import { entryPath, identityPath } from "./ledger-documents.ts";

/** True if each grant that the entry has spent is over, so that no object can open it again. */
export function isEndedForEver({ spent }: LedgerEntry, ledger: Pick<LedgerView, "endedGeneration">): boolean {
  return Object.entries(spent).every(([key, generation]) => generation <= ledger.endedGeneration(key));
}

/** The commands that remove an entry, unless it has changed meanwhile. */
export function removal(entry: LedgerEntry, { indexOf }: Pick<EntryWriting, "indexOf">): readonly SingleCommand[] {
  return [
    { kind: "compareAndDelete", path: entryPath(entry.id), expected: { index: BigInt(indexOf(entry.id)) } },
    ...entry.identities.map((identity): SingleCommand => {
      return { kind: "compareAndDelete", path: identityPath(identity), expected: { value: entry.id } };
    }),
  ];
}

/**
 * Returns the grants that open an install now or, without a further change of the objects, later. A machine that is
 * forgotten spends them: otherwise a grant with the scope NeverInstalled would install it at once.
 */
export function openSooner(grants: readonly NamedGrant[], ledger: LedgerView): readonly NamedGrant[] {
  const { id, nowMs } = ledger;
  return grants.filter(
    ({ key, grant: { ledger: named, untilMs, generation } }) =>
      named === id && untilMs !== undefined && nowMs < untilMs && generation > ledger.endedGeneration(key),
  );
}

/**
 * Plans to forget an entry. It is removed if no grant can open for it. Otherwise it becomes Failed, so the machine
 * counts as never installed, and it keeps what it has spent.
 */
export function plannedForgetting(
  entry: LedgerEntry,
  grants: readonly NamedGrant[],
  ledger: LedgerView,
  writing: EntryWriting,
): readonly SingleCommand[] {
  const open = openSooner(grants, ledger);
  if (open.length === 0 && !isOpen(entry) && isEndedForEver(entry, ledger)) return removal(entry, writing);
  const { grant, reported, labels, ...kept } = entry;
  const forgotten: LedgerEntry = {
    ...kept,
    state: "Failed",
    ...spentWith(
      entry,
      open.map(({ key, grant: { generation, untilMs } }) => ({ key, generation, untilMs })),
    ),
    changedAtMs: Math.max(writing.nowMs, entry.changedAtMs),
  };
  return [change(forgotten, writing)];
}
