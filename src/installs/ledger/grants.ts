/**
 * What a ledger has to do with grants, as pure functions: which it records as over, which name another ledger, and
 * which a forgotten machine spends. Forgetting a machine opens no grant.
 */

import { toRfc3339 } from "../../lib/clock.ts";
import type { LedgerEntry, LedgerView, NamedGrant } from "../../model/permits/permit.ts";
import type { SingleCommand } from "../../store/command/command.ts";
import type { StorePath } from "../../store/core/node.ts";
import { change, type EntryWriting, isOpen, spentWith } from "./claim.ts";
import type { KnownLedger } from "./known-ledger.ts";
import { encodeEnded, endedPath, entryPath, identityPath } from "./ledger-documents.ts";

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

/**
 * Returns a command for each grant that has ended and is not recorded yet. Once recorded, no clock opens it again.
 * @param most the largest number of commands.
 */
export function endingCommands(
  grants: readonly NamedGrant[],
  ledger: LedgerView,
  indexOf: (path: StorePath) => number,
  most: number,
): readonly SingleCommand[] {
  const { id, nowMs } = ledger;
  const generations = new Map<string, number>();
  for (const { key, grant } of grants) {
    const isOver = grant.ledger === id && grant.untilMs !== undefined && nowMs >= grant.untilMs;
    if (!isOver || grant.generation <= (generations.get(key) ?? ledger.endedGeneration(key))) continue;
    generations.set(key, grant.generation);
    if (generations.size === most) break;
  }
  return [...generations].map(([key, generation]) => {
    const path = endedPath(key);
    const index = indexOf(path);
    const value = encodeEnded({ generation });
    if (index === 0) return { kind: "create", path, value };
    return { kind: "compareAndSwap", path, value, expected: { index: BigInt(index) } };
  });
}

type ForeignLedger = Pick<KnownLedger, "id" | "meta" | "isUsed" | "nowMs">;

/**
 * Returns the line for the operator about grants that name another ledger than the present one: a new ledger has begun
 * since they were made. Undefined if every grant names the present ledger. Grants that are over count only
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
