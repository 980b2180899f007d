/** What a claim writes: pure functions from a machine's entries to the commands of one batch. */

import type { InstallPlan, LedgerEntry, PermitAsk, SpentGrant } from "../../model/permits/permit.ts";
import type { SingleCommand } from "../../store/command/command.ts";
import { encodeEntry, entryPath, identityPath } from "./ledger-documents.ts";

/** The number of addresses that an entry keeps. A second one shows that another client took part. */
const maxAddresses = 2;
/** The most identities of an entry: as many as a Machine can list, a uuid and 16 MAC addresses. */
const maxIdentities = 17;

/** What is needed to write entries. */
export interface EntryWriting {
  readonly nowMs: number;
  /** Returns the id of a new entry. */
  readonly newId: () => string;
  /** Returns the index of the last change of an entry's document. */
  readonly indexOf: (id: string) => number;
}

/** An entry as a batch makes it, with the commands of that batch. */
interface PlannedEntry {
  readonly entry: LedgerEntry;
  readonly commands: readonly SingleCommand[];
}

/** What a claim records. */
interface ClaimOf extends Pick<PermitAsk, "identities" | "listed" | "group" | "profile" | "revision"> {
  readonly plan: Pick<InstallPlan, "timeoutSeconds">;
  readonly address: string | undefined;
}

/**
 * Plans a claim. All entries of the machine spend the grants. The install itself is that of the entry that changed
 * last; an install of the others ends. The entry gets all identities that the Machine lists, or without a Machine those
 * of the request. If there are too many, another entry has the rest.
 * @param entries of the machine, as `recognised` returns them if it is clear.
 */
export function plannedClaim(
  ask: ClaimOf,
  grants: readonly [SpentGrant, ...SpentGrant[]],
  entries: readonly LedgerEntry[],
  writing: EntryWriting,
): PlannedEntry {
  const [first] = grants;
  const main = latestFirst(entries)[0];
  const others = entries.filter((entry) => entry !== main);
  const changedAtMs = Math.max(writing.nowMs, ...entries.map((entry) => entry.changedAtMs + 1));
  const { added, others: rest } = newIdentities(ask, main, entries);
  const claimed: LedgerEntry = {
    id: main?.id ?? writing.newId(),
    identities: [...(main?.identities ?? []), ...added],
    state: "Claimed",
    grant: first,
    ...spentWith(main, grants),
    claimedAtMs: changedAtMs,
    changedAtMs,
    timeoutSeconds: ask.plan.timeoutSeconds,
    group: ask.group,
    profile: ask.profile,
    revision: ask.revision,
    addresses: ask.address === undefined ? [] : [ask.address],
    ...(ask.address !== undefined && { claimedFrom: ask.address }),
    ...(main?.labels && { labels: main.labels }),
  };
  const closed = others.map((entry) => ({
    ...(isOpen(entry) ? ended(entry, "Unconfirmed", changedAtMs - 1) : entry),
    // The reports of an earlier install of this entry no longer count.
    grant: first,
    claimedAtMs: changedAtMs,
    ...spentWith(entry, grants),
  }));
  const { labels: _labels, ...beside } = claimed;
  return {
    entry: claimed,
    commands: [
      ...recording(claimed, main, added, writing),
      ...closed.map((entry) => change(entry, writing)),
      ...recordingBeside({ ...beside, state: "Unconfirmed", changedAtMs: changedAtMs - 1 }, rest, writing),
    ],
  };
}

/**
 * True if all entries of a machine took part in this claim. Otherwise a Machine lists identities that claimed as
 * different machines, and one of them may be installed already.
 */
export function areClaimedTogether(claimed: LedgerEntry, entries: readonly LedgerEntry[]): boolean {
  return entries.every(
    (entry) =>
      entry === claimed ||
      (!isOpen(entry) && entry.claimedAtMs === claimed.claimedAtMs && entry.changedAtMs < claimed.changedAtMs),
  );
}

/**
 * Plans the entry of a machine that counts as installed, with the identities as for a claim. Several entries of one
 * machine all become Installed.
 * @returns undefined if nothing changes.
 */
export function plannedAdoption(
  machine: Pick<ClaimOf, "identities" | "listed" | "group" | "profile" | "address">,
  entries: readonly LedgerEntry[],
  writing: EntryWriting,
): PlannedEntry | undefined {
  const { nowMs } = writing;
  const [main, ...others] = latestFirst(entries);
  const { added, others: rest } = newIdentities(machine, main, entries);
  const { group, profile, address } = machine;
  const adopted: LedgerEntry = {
    id: writing.newId(),
    identities: added,
    state: "Installed",
    spent: {},
    claimedAtMs: nowMs,
    changedAtMs: nowMs,
    timeoutSeconds: 0,
    group,
    profile,
    addresses: address === undefined ? [] : [address],
  };
  const beside = recordingBeside({ ...adopted, ...spentWith(main, []) }, rest, writing);
  if (main === undefined) return { entry: adopted, commands: [...recording(adopted, main, added, writing), ...beside] };
  const isSame = added.length + rest.length === 0 && entries.every(({ state }) => state === "Installed");
  if (isSame) return undefined;
  const installed = { ...installedBy(main, nowMs), identities: [...main.identities, ...added] };
  const closed = others.filter(({ state }) => state !== "Installed").map((entry) => installedBy(entry, nowMs));
  return {
    entry: installed,
    commands: [
      ...recording(installed, main, added, writing),
      ...closed.map((entry) => change(entry, writing)),
      ...beside,
    ],
  };
}

/** Returns an entry in another state. */
export function ended(entry: LedgerEntry, state: LedgerEntry["state"], nowMs: number): LedgerEntry {
  return { ...entry, state, changedAtMs: Math.max(nowMs, entry.changedAtMs) };
}

/** Returns the entry with this address as the latest one, which comes first. */
export function seenAt(entry: LedgerEntry, address: string | undefined): LedgerEntry {
  const [last] = entry.addresses;
  if (address === undefined || address === last) return entry;
  const others = entry.addresses.filter((other) => other !== address);
  return { ...entry, addresses: [address, ...others].slice(0, maxAddresses) };
}

/** True if the entry has room for this address and does not have it. */
export function isNewAddress({ addresses }: LedgerEntry, address: string | undefined): boolean {
  return address !== undefined && addresses.length < maxAddresses && !addresses.includes(address);
}

/** The command that replaces an entry, unless it has changed meanwhile. */
export function change(entry: LedgerEntry, { indexOf }: Pick<EntryWriting, "indexOf">): SingleCommand {
  return {
    kind: "compareAndSwap",
    path: entryPath(entry.id),
    value: encodeEntry(entry),
    expected: { index: BigInt(indexOf(entry.id)) },
  };
}

/** True while the install of the entry has no end yet. */
export function isOpen({ state }: LedgerEntry): boolean {
  return state === "Claimed" || state === "Installing";
}

/** The commands that write an entry and give it its new identities. @param former undefined for a new entry. */
function recording(
  entry: LedgerEntry,
  former: LedgerEntry | undefined,
  added: readonly string[],
  writing: EntryWriting,
): readonly SingleCommand[] {
  return [
    former === undefined ? creation(entry) : change(entry, writing),
    ...added.map((identity) => naming(identity, entry.id)),
  ];
}

/** The commands that write an entry like this one for the identities that have no room in it. */
function recordingBeside(
  entry: LedgerEntry,
  identities: readonly string[],
  writing: EntryWriting,
): readonly SingleCommand[] {
  if (identities.length === 0) return [];
  return recording({ ...entry, id: writing.newId(), identities }, undefined, identities, writing);
}

function creation(entry: LedgerEntry): SingleCommand {
  return { kind: "create", path: entryPath(entry.id), value: encodeEntry(entry) };
}

/** The command that gives an identity to an entry. It is refused if another entry has the identity. */
function naming(identity: string, id: string): SingleCommand {
  return { kind: "create", path: identityPath(identity), value: id };
}

function installedBy(entry: LedgerEntry, nowMs: number): LedgerEntry {
  return entry.state === "Installed" ? entry : ended(entry, "Installed", nowMs);
}

/**
 * Returns the identities that none of the entries has: those for the entry `main`, and others that have no room in it.
 * With a Machine, these are only identities that the Machine lists: it says nothing of others in the request.
 */
function newIdentities(
  { identities, listed }: Pick<ClaimOf, "identities" | "listed">,
  main: LedgerEntry | undefined,
  entries: readonly LedgerEntry[],
): { readonly added: readonly string[]; readonly others: readonly string[] } {
  const known = new Set(entries.flatMap((entry) => entry.identities));
  const fresh = [...new Set(listed ?? identities)].filter((identity) => !known.has(identity));
  const room = Math.max(0, maxIdentities - (main?.identities.length ?? 0));
  return { added: fresh.slice(0, room), others: fresh.slice(room) };
}

/** Returns an entry that has spent the grant of another entry of the same machine. */
export function spentAs(entry: LedgerEntry, { grant }: Pick<LedgerEntry, "grant">): LedgerEntry {
  if (grant === undefined || (entry.spent[grant.key] ?? 0) >= grant.generation) return entry;
  return { ...entry, ...spentWith(entry, [grant]) };
}

/**
 * Returns what an entry has spent with these grants. A grant of a higher generation stays as it is.
 * @param untilMs of a grant only if the machine is forgotten: see `LedgerEntry.forgottenUntil`.
 */
export function spentWith(
  entry: Pick<LedgerEntry, "spent" | "forgottenUntil"> | undefined,
  grants: readonly (SpentGrant & { readonly untilMs?: number | undefined })[],
): Pick<LedgerEntry, "spent" | "forgottenUntil"> {
  const spent = new Map(Object.entries(entry?.spent ?? {}));
  const forgottenUntil = new Map(Object.entries(entry?.forgottenUntil ?? {}));
  for (const { key, generation, untilMs } of grants) {
    if ((spent.get(key) ?? 0) >= generation) continue;
    spent.set(key, generation);
    if (untilMs === undefined) forgottenUntil.delete(key);
    else forgottenUntil.set(key, untilMs);
  }
  const kept = { forgottenUntil: forgottenUntil.size === 0 ? undefined : Object.fromEntries(forgottenUntil) };
  return { spent: Object.fromEntries(spent), ...kept };
}

function latestFirst(entries: readonly LedgerEntry[]): readonly LedgerEntry[] {
  return entries.toSorted((a, b) => b.changedAtMs - a.changedAtMs);
}
