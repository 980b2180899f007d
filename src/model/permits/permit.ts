/**
 * Permits: whether a machine may install now. Objects grant an install, and the ledger records which grants are spent.
 * What a machine sends can only close a permit. All functions here are pure, so the ledger's writer, its followers and
 * previews decide alike.
 *
 *   no entry, open grant                          claim      the script is served after the claim is logged
 *   Claimed less than 60 s ago, nothing read yet  script     the script is served again: the first answer may be lost
 *   Claimed or Installing, config asked for       config
 *   Claimed later or Installing, script asked for disk       the machine came back before it reported an end
 *   Installed or Unconfirmed, no open grant       disk
 *   Failed or no entry, no open grant             refused
 *   identities not clear, an entry is installed   disk
 *   identities not clear                          refused
 */

import type { PermitRefusal } from "../refusals.ts";
import { recognised } from "./recognised.ts";

/** A wish of an object: each of its machines may install once. */
export interface InstallGrant {
  /** From 1. Each generation of a grant opens at most once for each machine. */
  readonly generation: number;
  /** The id of the ledger in which the grant counts. Without it the grant is asleep. */
  readonly ledger?: string;
  /** Unix milliseconds: the grant ends then for ever. Without it the grant is asleep. */
  readonly untilMs?: number;
  /** `NeverInstalled`: not for machines that are Installed or Unconfirmed. */
  readonly scope: InstallScope;
}

export const installScopes = ["NeverInstalled", "All"] as const;
export type InstallScope = (typeof installScopes)[number];

/** A grant with its name in the ledger: `group/NAMESPACE/NAME` or `machine/NAMESPACE/NAME`. */
export interface NamedGrant {
  readonly key: string;
  readonly grant: InstallGrant;
}

/** How a Profile installs. */
export interface InstallPlan {
  /** How a machine boots whose permit is closed. */
  readonly then: LocalBoot;
  /** Only with `sanboot`: where the disk has its loader. Absent for the first disk as the firmware knows it. */
  readonly disk?: DiskLoaders;
  /** After this time without a report of the end, the install is Unconfirmed. */
  readonly timeoutSeconds: number;
}

/** Labels that machines may report about themselves, with the values that they may have. */
export interface ReportRules {
  readonly labels: Readonly<Record<string, readonly string[]>>;
  /** How long a reported label counts; absent for ever. */
  readonly ttlSeconds?: number;
}

/** The last install of a machine. `Claimed`: the permit is spent, and the machine may have the script. */
export const installStates = ["Claimed", "Installing", "Installed", "Failed", "Unconfirmed"] as const;
export type InstallState = (typeof installStates)[number];

/** What the ledger knows of one machine. */
export interface LedgerEntry {
  /** 16 hexadecimal digits, random. */
  readonly id: string;
  /** `uuid/VALUE` and `mac/VALUE`, normalised like labels. */
  readonly identities: readonly string[];
  readonly state: InstallState;
  /** The grant that the last claim spent; absent for an adopted machine. */
  readonly grant?: SpentGrant;
  /** The highest generation that each grant has spent on this machine. It stays when the object is deleted. */
  readonly spent: Readonly<Record<string, number>>;
  /** The `until`, in Unix milliseconds, of grants that were spent by forgetting the machine, not by an install. */
  readonly forgottenUntil?: Readonly<Record<string, number>> | undefined;
  /** Unix milliseconds by the ledger's clock: the last claim. */
  readonly claimedAtMs: number;
  /** Unix milliseconds by the ledger's clock: the last change of `state`. */
  readonly changedAtMs: number;
  readonly timeoutSeconds: number;
  /** `namespace/name` at the last claim. */
  readonly group: string;
  readonly profile: string;
  /** The Profile's revision at the last claim; absent in an entry of an earlier davit. */
  readonly revision?: string;
  /** The address whose request made the last claim; absent if it was not known. */
  readonly claimedFrom?: string;
  /** Another address that asked for a text which only the claiming one may have: the text is closed since then. */
  readonly otherAddress?: string;
  /** Addresses that took part in the last install, the last one first; at most two. */
  readonly addresses: readonly string[];
  readonly reported?: ReportedProgress;
  /** What the machine has reported about itself. */
  readonly labels?: Readonly<Record<string, ReportedLabel>>;
}

export interface SpentGrant {
  readonly key: string;
  readonly generation: number;
}

export interface ReportedProgress {
  readonly state: ReportState;
  /** 0 to 100. */
  readonly progress?: number;
  /** At most 256 characters, without control characters. */
  readonly message?: string;
  /** Unix milliseconds by the ledger's clock. */
  readonly atMs: number;
}

export const reportStates = ["installing", "progress", "installed", "failed", "booted"] as const;
export type ReportState = (typeof reportStates)[number];

export interface ReportedLabel {
  readonly value: string;
  /** Unix milliseconds by the ledger's clock; absent for ever. */
  readonly untilMs?: number;
}

/** True until the time of a reported label is over. @param nowMs as `untilMs`. */
export function stillCounts({ untilMs }: ReportedLabel, nowMs: number): boolean {
  return untilMs === undefined || nowMs < untilMs;
}

/** What decisions read of the ledger. */
export interface LedgerView {
  /** 8 hexadecimal digits; undefined while davit knows no ledger: then nothing installs. */
  readonly id: string | undefined;
  /** Unix milliseconds, never earlier than a time that the ledger has seen: a clock set back reopens nothing. */
  readonly nowMs: number;
  /** True if no machine without an entry may claim. */
  readonly isFull: boolean;
  /** Why nothing installs until a person changes something, for people. It decides nothing. */
  readonly trouble?: string | undefined;
  /** The highest generation of a grant that has ended by its `until`; 0 for none. */
  endedGeneration(key: string): number;
  /** Until when machines of this Group (`namespace/name`) without an entry count as installed; 0 for never. */
  adoptedUntilMs(group: string): number;
  /** The distinct entries that have one of these identities. */
  entriesOf(identities: readonly string[]): readonly LedgerEntry[];
}

/** What a machine asks for: a boot script, or a config that an installer reads. */
export type PermitPurpose = "script" | "config";

/** A machine that asks, with the objects that decide. */
export interface PermitAsk {
  readonly purpose: PermitPurpose;
  /** Of the request. */
  readonly identities: readonly string[];
  /** All identities of the machine's Machine object; absent without one. */
  readonly listed?: readonly string[];
  /** The grants that may open the install: first the Machine's, then the Group's. */
  readonly grants: readonly NamedGrant[];
  readonly plan: InstallPlan;
  /** `namespace/name`. */
  readonly group: string;
  readonly profile: string;
  /** Of the Profile, see `ProfileDocument.revision`. */
  readonly revision: string;
}

export type Verdict =
  /**
   * The machine may install once the ledger has logged that it spends these grants: one install is enough for all
   * grants that are open. The first one counts as its reason.
   */
  | { readonly kind: "claim"; readonly grants: readonly [SpentGrant, ...SpentGrant[]] }
  /** The machine has claimed the install, and may have the script again, or a config. */
  | { readonly kind: "granted"; readonly entry: LedgerEntry }
  /** The machine boots as `InstallPlan.then` says. `why`: also if a grant is open. */
  | { readonly kind: "disk"; readonly why?: PermitRefusal }
  | { readonly kind: "refused"; readonly why: PermitRefusal };

/** The time after a claim in which the script may be fetched again. */
export const repeatMs = 60_000;
const maxAheadMs = 7 * 24 * 3_600_000;

/** Decides what a machine gets of a Profile with an `InstallPlan`. */
export function verdictOf(ask: PermitAsk, ledger: LedgerView): Verdict {
  if (ledger.id === undefined) return refused("noLedger");
  if (ask.identities.length === 0) return refused("noIdentity");
  const { entries, isClear } = recognised(ask, ledger);
  if (!isClear) return unclearVerdict(ask, entries);
  return ask.purpose === "config" ? configVerdict(ask, entries, ledger) : scriptVerdict(ask, entries, ledger);
}

/** A machine that may be an installed one boots its disk, so that it does not wait for ever. */
function unclearVerdict({ purpose }: PermitAsk, entries: readonly LedgerEntry[]): Verdict {
  return purpose === "script" && entries.some(isInstalled)
    ? { kind: "disk", why: "ambiguousIdentity" }
    : refused("ambiguousIdentity");
}

function configVerdict(ask: PermitAsk, entries: readonly LedgerEntry[], ledger: LedgerView): Verdict {
  const entry = latestOf(entries);
  if (entry === undefined) return refused("notClaimed");
  if (!isUnderWay(entry, ledger.nowMs)) return refused("over");
  if (!isOfRevision(ask, entry)) return refused("otherProfile");
  return isOfClaim(ask, entry, ledger) ? { kind: "granted", entry } : refused("otherGroup");
}

/** True if an install began with this revision of the Profile. */
export function isOfRevision(
  { profile, revision }: Pick<PermitAsk, "profile" | "revision">,
  entry: Pick<LedgerEntry, "profile" | "revision">,
): boolean {
  return entry.profile === profile && (entry.revision === undefined || entry.revision === revision);
}

/**
 * True if an install began in this Group, if the objects still have its grant, or if the Group has an open grant of the
 * same generation, as a renamed one. Otherwise the Group does not grant this install, and its metadata may name other
 * disks.
 */
export function isOfClaim(ask: PermitAsk, entry: LedgerEntry, ledger: LedgerView): boolean {
  const { grant: spent } = entry;
  if (ask.group === entry.group || isStillGranted(ask, entry, ledger.id)) return true;
  return ask.grants.some(
    (named) =>
      named.grant.generation === spent?.generation &&
      kindOf(named.key) === kindOf(spent.key) &&
      grantRefusal(named, ledger) === undefined,
  );
}

function scriptVerdict(ask: PermitAsk, entries: readonly LedgerEntry[], ledger: LedgerView): Verdict {
  const {
    open: [first, ...others],
    why,
  } = openGrants(ask, entries, ledger);
  const entry = latestOf(entries);
  if (first !== undefined && entry === undefined && ledger.isFull) return refused("full");
  if (first !== undefined) return { kind: "claim", grants: [first, ...others] };
  if (entry === undefined) return isAdopted(ask, ledger) ? disk : refused(why);
  if (isRepeatable(entry, ledger.nowMs)) {
    if (!isStillGranted(ask, entry, ledger.id)) return refused("withdrawn");
    return isOfRevision(ask, entry) ? { kind: "granted", entry } : refused("otherProfile");
  }
  return entry.state === "Failed" ? refused(why) : disk;
}

function isAdopted({ group }: Pick<PermitAsk, "group">, ledger: LedgerView): boolean {
  return ledger.nowMs < ledger.adoptedUntilMs(group);
}

/** True while the install has begun and may still end well. */
export function isUnderWay({ state, claimedAtMs, timeoutSeconds }: LedgerEntry, nowMs: number): boolean {
  return (state === "Claimed" || state === "Installing") && nowMs < claimedAtMs + timeoutSeconds * 1_000;
}

/** True while the machine may fetch its script again. */
export function isRepeatable({ state, claimedAtMs, timeoutSeconds }: LedgerEntry, nowMs: number): boolean {
  return state === "Claimed" && nowMs < claimedAtMs + Math.min(repeatMs, timeoutSeconds * 1_000);
}

/** True if the objects still have the grant that the machine has spent. */
export function isStillGranted(
  { grants }: Pick<PermitAsk, "grants">,
  { grant: spent }: Pick<LedgerEntry, "grant">,
  ledgerId: LedgerView["id"],
): boolean {
  return grants.some(
    ({ key, grant: { generation, ledger } }) =>
      key === spent?.key && generation === spent.generation && (ledgerId === undefined || ledger === ledgerId),
  );
}

interface OpenGrants {
  readonly open: readonly SpentGrant[];
  /** Why none is open, if none is. */
  readonly why: PermitRefusal;
}

function openGrants(ask: PermitAsk, entries: readonly LedgerEntry[], ledger: LedgerView): OpenGrants {
  const machine = { entries, group: ask.group };
  const open: SpentGrant[] = [];
  let why: PermitRefusal = "noGrant";
  for (const named of ask.grants) {
    const refusal = refusalFor(named, machine, ledger);
    if (refusal === undefined) open.push({ key: named.key, generation: named.grant.generation });
    else why = refusal;
  }
  return { open, why };
}

/**
 * Returns why an address gets no text that is served only during an install; undefined if it does. The entry is that of
 * an open install.
 */
export function sealRefusal(
  { claimedFrom, otherAddress }: LedgerEntry,
  address: string | undefined,
): "noAddress" | "otherAddress" | "closed" | undefined {
  if (otherAddress !== undefined) return "closed";
  if (claimedFrom === undefined || address === undefined) return "noAddress";
  return address === claimedFrom ? undefined : "otherAddress";
}

/** Returns why a grant opens no install now, whatever the machine; undefined if it does. */
export function grantRefusal({ key, grant }: NamedGrant, ledger: LedgerView): PermitRefusal | undefined {
  if (ledger.id === undefined) return "noLedger";
  if (grant.ledger === undefined) return "noLedgerNamed";
  if (grant.ledger !== ledger.id) return "otherLedger";
  if (grant.generation <= ledger.endedGeneration(key)) return "ended";
  return untilRefusal(grant, ledger.nowMs);
}

/** Returns why the end of a grant opens no install now; undefined if it allows one. @param nowMs as `untilMs`. */
export function untilRefusal(
  { untilMs }: InstallGrant,
  nowMs: number,
): "noUntil" | "ended" | "tooFarAhead" | undefined {
  if (untilMs === undefined) return "noUntil";
  if (nowMs >= untilMs) return "ended";
  return untilMs - nowMs > maxAheadMs ? "tooFarAhead" : undefined;
}

/**
 * Returns why a grant opens no install now for a machine; undefined if it does.
 * @param machine its entries, and its Group as `namespace/name`.
 */
export function refusalFor(
  named: NamedGrant,
  { entries, group }: { readonly entries: readonly LedgerEntry[]; readonly group: string },
  ledger: LedgerView,
): PermitRefusal | undefined {
  const { grant } = named;
  const refusal = grantRefusal(named, ledger);
  if (refusal !== undefined) return refusal;
  if (entries.some((entry) => hasSpent(entry, named))) return "spent";
  const countsAsInstalled = entries.length === 0 ? isAdopted({ group }, ledger) : entries.some(isInstalled);
  return grant.scope === "NeverInstalled" && countsAsInstalled ? "installed" : undefined;
}

/**
 * True if a machine has spent a grant: that of any object of the same kind whose generation is as high. So a Group or
 * Machine that is renamed or copied grants nothing anew. A forgotten machine has spent every open grant: of those, only
 * one with the same generation and `until` is the same under another name.
 */
export function hasSpent({ spent, forgottenUntil = {} }: LedgerEntry, named: NamedGrant): boolean {
  const { key, grant } = named;
  if ((spent[key] ?? 0) >= grant.generation) return true;
  const kind = kindOf(key);
  return Object.entries(spent).some(([other, generation]) => {
    if (!other.startsWith(kind)) return false;
    const untilMs = forgottenUntil[other];
    if (untilMs === undefined) return generation >= grant.generation;
    return generation === grant.generation && untilMs === grant.untilMs;
  });
}

/** The kind of a grant's key, with the slash behind it. A text without a kind is returned as it is. */
export function kindOf(key: string): string {
  return key.slice(0, key.indexOf("/") + 1) || key;
}

function isInstalled({ state }: LedgerEntry): boolean {
  return state === "Installed" || state === "Unconfirmed";
}

function latestOf(entries: readonly LedgerEntry[]): LedgerEntry | undefined {
  return entries.toSorted((a, b) => b.changedAtMs - a.changedAtMs)[0];
}

const disk: Verdict = { kind: "disk" };

function refused(why: PermitRefusal): Verdict {
  return { kind: "refused", why };
}

export type LocalBoot = "exit" | "sanboot" | "notFound";

/** Where `sanboot` finds a disk that the firmware does not start by itself. */
export interface DiskLoaders {
  /**
   * UEFI: paths of loaders from the root of an EFI partition, written with `/`. The first one that exists starts.
   * Absent for those of the usual distributions.
   */
  readonly efi?: readonly string[];
  /** BIOS: the number of the drive, 0x80 to 0x8f. Absent for 0x80, the first disk. */
  readonly bios?: number;
}
