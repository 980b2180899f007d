/** Describes machines and the ledger in JSON for `/machines` and `/ledger`. */

import { toRfc3339 } from "../../lib/clock.ts";
import { isOwnUuid, normalizeMac } from "../../model/labels/hardware-ids.ts";
import { identity as identityText, phaseOf } from "../../model/objects/machine.ts";
import {
  grantRefusal,
  type LedgerEntry,
  type LedgerView,
  type NamedGrant,
  type PermitAsk,
  type Verdict,
  verdictOf,
} from "../../model/permits/permit.ts";
import { permitRefusals } from "../../model/refusals.ts";
import type { MachineBook, MachineBoot, NamedMachine, PendingMachine } from "./machine-book.ts";

/** A machine: its object if it has one, and the ledger's entries of its identities. */
export interface MachineSubject {
  readonly object: NamedMachine | undefined;
  readonly identities: readonly string[];
  /** The latest change is first. */
  readonly entries: readonly LedgerEntry[];
  /** What a machine without an object has sent last, if that is known: more than the ledger knows is a doubt. */
  readonly sent?: readonly string[];
  /** Set for a machine that has neither an object nor an entry. */
  readonly pending?: PendingMachine;
}

/** Yields every machine once: objects first, then machines of the ledger alone, then those that wait for an object. */
export function* subjectsOf(book: MachineBook): Generator<MachineSubject> {
  const shown = new Set<string>();
  for (const subject of allSubjects(book)) {
    const { object, identities, entries } = subject;
    const keys = [...identities, ...entries.map(({ id }) => id)];
    if (object === undefined && keys.some((key) => shown.has(key))) continue;
    for (const key of keys) shown.add(key);
    yield subject;
  }
}

function* allSubjects(book: MachineBook): Generator<MachineSubject> {
  for (const object of book.machines()) yield subjectOf(book, object);
  for (const entry of book.ledger.entries.values()) {
    yield { object: undefined, identities: entry.identities, entries: [entry] };
  }
  for (const pending of book.pending?.() ?? []) {
    yield { object: undefined, identities: pending.identities, entries: [], pending };
  }
}

/** Returns the machine of an object. */
export function subjectOf({ ledger }: MachineBook, object: NamedMachine): MachineSubject {
  const { identities } = object.document.spec;
  return { object, identities, entries: latestFirst(ledger.entriesOf(identities)) };
}

/** Returns the line of a machine in the list. */
export function machineJson(book: MachineBook, subject: MachineSubject) {
  const { object, identities, entries, pending } = subject;
  const [entry] = entries;
  const boot = book.bootOf(identities);
  const lastChangeMs = entry?.changedAtMs ?? pending?.firstSeenAtMs;
  return {
    name: object?.name,
    identities,
    group: boot?.group ?? pending?.group ?? entry?.group,
    profile: boot?.profile ?? entry?.profile,
    phase: phaseOf({
      isHeld: object?.document.spec.hold === true || boot?.isHeld === true,
      mayInstall: mayInstall(book, subject, boot),
      entry,
      nowMs: book.ledger.nowMs,
    }),
    ...(object && { approved: isApproved(object), hold: object.document.spec.hold }),
    needsApproval: boot?.needsApproval === true ? true : undefined,
    install: entry && installJson(entry),
    reported: entry?.reported && { ...entry.reported, atMs: undefined, at: toRfc3339(entry.reported.atMs) },
    lastChange: lastChangeMs === undefined ? undefined : toRfc3339(lastChangeMs),
  };
}

function mayInstall(book: MachineBook, subject: MachineSubject, boot: MachineBoot | undefined): boolean {
  if (boot === undefined || (boot.needsApproval && !isApproved(subject.object))) return false;
  const kind = permitOf(book, subject, boot)?.kind;
  return kind === "claim" || kind === "granted";
}

/** Returns everything about a machine. */
export function machineDetailsJson(book: MachineBook, subject: MachineSubject) {
  const { object, identities, entries } = subject;
  const boot = book.bootOf(identities);
  return {
    ...machineJson(book, subject),
    origin: object?.document.origin,
    isRefused: object?.document.refused,
    labels: object?.document.spec.labels,
    permit: boot && nextBootJson(book, subject, boot),
    grants: boot?.grants.map((named) => grantJson(book.ledger, named)),
    entries: entries.map((entry) => ({
      id: entry.id,
      identities: entry.identities,
      group: entry.group,
      profile: entry.profile,
      ...installJson(entry),
      spent: entry.spent,
      addresses: entry.addresses,
      claimedFrom: entry.claimedFrom,
      otherAddress: entry.otherAddress,
      labels: reportedLabelsJson(entry),
    })),
  };
}

/** Returns the ledger's totals. */
export function ledgerJson({ ledger: { id, nowMs, entries, ended, adopted }, problems }: MachineBook): object {
  const health = id === undefined ? [permitRefusals.noLedger, ...problems] : problems;
  return {
    id: id ?? null,
    now: toRfc3339(nowMs),
    health: health.length === 0 ? "ok" : health.join("; "),
    entries: entries.size,
    ended: [...ended].map(([grant, generation]) => ({ grant, generation })),
    adopted: [...adopted]
      .filter(([, untilMs]) => untilMs > nowMs)
      .map(([group, untilMs]) => ({ group, until: toRfc3339(untilMs) })),
  };
}

/** Returns a grant as the ledger sees it. */
export function grantJson(ledger: LedgerView, named: NamedGrant) {
  const { key, grant } = named;
  const why = grantRefusal(named, ledger);
  return {
    key,
    generation: grant.generation,
    ledger: grant.ledger,
    until: grant.untilMs === undefined ? undefined : toRfc3339(grant.untilMs),
    scope: grant.scope,
    isOpen: why === undefined,
    why: why && permitRefusals[why],
  };
}

/** A refused version approves nothing. */
function isApproved(object: NamedMachine | undefined): boolean {
  return object?.document.spec.approved === true && object.document.refused !== true;
}

/** A hold and a missing approval come before every permit. */
function nextBootJson(book: MachineBook, subject: MachineSubject, boot: MachineBoot) {
  const { object } = subject;
  const isHeld = boot.isHeld || object?.document.spec.hold === true;
  if (isHeld) return { next: "refused", why: "its Machine or its Group has hold: true" } as const;
  if (boot.needsApproval && !isApproved(object)) {
    return { next: "refused", why: "its Group needs an approved Machine: davit machine approve" } as const;
  }
  return permitJson(permitOf(book, subject, boot));
}

function permitOf(book: MachineBook, subject: MachineSubject, boot: MachineBoot): Verdict | undefined {
  const { object, sent, identities } = subject;
  const { plan, grants, group, profile, revision } = boot;
  if (plan === undefined) return undefined;
  const asking = object === undefined ? { identities: sent ?? identities } : { identities, listed: identities };
  const ask: PermitAsk = { purpose: "script", ...asking, grants, plan, group, profile, revision };
  return verdictOf(ask, book.ledger);
}

function permitJson(verdict: Verdict | undefined) {
  if (verdict === undefined) return undefined;
  const why = verdict.kind === "refused" || verdict.kind === "disk" ? verdict.why : undefined;
  return { next: verdict.kind, why: why && permitRefusals[why] };
}

function installJson({ state, grant, claimedAtMs, changedAtMs }: LedgerEntry) {
  return {
    state,
    grant: grant?.key,
    generation: grant?.generation,
    claimedAt: grant === undefined ? undefined : toRfc3339(claimedAtMs),
    changedAt: toRfc3339(changedAtMs),
  };
}

function reportedLabelsJson({ labels = {} }: LedgerEntry) {
  return Object.fromEntries(
    Object.entries(labels).map(([name, { value, untilMs }]) => [
      name,
      { value, until: untilMs === undefined ? undefined : toRfc3339(untilMs) },
    ]),
  );
}

function latestFirst(entries: readonly LedgerEntry[]): readonly LedgerEntry[] {
  return entries.toSorted((a, b) => b.changedAtMs - a.changedAtMs);
}

/** Finds the machine that a name means: its object, its entries, or both. */
export function findMachine(book: MachineBook, name: string): MachineSubject | undefined {
  const identity = identityOf(name);
  for (const object of book.machines()) {
    const isIt = identity === undefined ? object.name === name : object.document.spec.identities.includes(identity);
    if (isIt) return subjectOf(book, object);
  }
  return identity === undefined ? undefined : findWithoutObject(book, identity);
}

function findWithoutObject(book: MachineBook, identity: string): MachineSubject | undefined {
  // In the ledger, an identity has at most one entry.
  const [entry] = book.ledger.entriesOf([identity]);
  if (entry !== undefined) return { object: undefined, identities: entry.identities, entries: [entry] };
  for (const waiting of book.pending?.() ?? []) {
    const { identities } = waiting;
    if (identities.includes(identity)) return { object: undefined, identities, entries: [], pending: waiting };
  }
  return undefined;
}

/** Returns the ledger's name of a MAC address or uuid in any form; undefined for any other text. */
export function identityOf(name: string): string | undefined {
  const mac = normalizeMac(name);
  if (mac !== undefined) return identityText("mac", mac);
  const uuid = name.toLowerCase();
  return isOwnUuid(uuid) ? identityText("uuid", uuid) : undefined;
}
