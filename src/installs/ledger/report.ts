/**
 * What a machine's report changes. A report only closes a permit:
 *
 *   state         installing, progress   installed   failed   booted
 *   Claimed       Installing             Installed   Failed   Installed
 *   Installing    Installing             Installed   Failed   Installed
 *   Installed     final                  taken       final    taken
 *   Failed        final                  Installed   taken    final
 *   Unconfirmed   final                  Installed   final    Installed
 *
 * `booted` comes from the installed system, so its install has ended well. After a failure it may come from an older
 * system, and does not count. An Unconfirmed install cannot fail any more: a Failed machine gets the next generation of
 * a grant that an Unconfirmed one does not get.
 */

import { identityLabels } from "../../model/labels/labels.ts";
import {
  type InstallState,
  isUnderWay,
  type LedgerEntry,
  type ReportedLabel,
  type ReportedProgress,
  type ReportRules,
} from "../../model/permits/permit.ts";
import type { MachineReport } from "../../model/permits/permit-desk.ts";
import { isNewAddress, seenAt } from "./claim.ts";

const maxMessageLength = 256;

/** A report with what is needed to apply it. */
interface Reporting {
  readonly report: MachineReport;
  readonly address: string | undefined;
  readonly nowMs: number;
  /** Of the Profile of the entry; undefined if its machines may set no labels. */
  readonly rules: ReportRules | undefined;
}

/** The entry after a report. `final` if the report comes too late to count. */
export type Reported = "final" | { readonly entry: LedgerEntry; readonly isChanged: boolean };

/** Applies a report to an entry. */
export function reported(entry: LedgerEntry, reporting: Reporting): Reported {
  const { nowMs, address } = reporting;
  const former = stateAt(entry, nowMs);
  const state = nextState(former, reporting.report.state);
  if (state === undefined) return "final";
  const labels = labelsAfter(entry.labels, reporting);
  const progress = progressAfter(entry, state, reporting);
  const isChanged =
    state !== entry.state || labels !== entry.labels || progress !== entry.reported || isNewAddress(entry, address);
  if (!isChanged) return { entry, isChanged };
  const changedAtMs = state === entry.state ? entry.changedAtMs : Math.max(nowMs, entry.changedAtMs);
  const changed: LedgerEntry = {
    ...seenAt(entry, address),
    state,
    changedAtMs,
    ...(progress && { reported: progress }),
    ...(labels && { labels }),
  };
  return { entry: changed, isChanged };
}

/** Returns the state, even if the ledger has not logged yet that the time of the install is over. */
export function stateAt(entry: LedgerEntry, nowMs: number): InstallState {
  const isOver = (entry.state === "Claimed" || entry.state === "Installing") && !isUnderWay(entry, nowMs);
  return isOver ? "Unconfirmed" : entry.state;
}

const ends: Readonly<Record<InstallState, Readonly<Partial<Record<MachineReport["state"], InstallState>>>>> = {
  Claimed: {
    installing: "Installing",
    progress: "Installing",
    installed: "Installed",
    failed: "Failed",
    booted: "Installed",
  },
  Installing: {
    installing: "Installing",
    progress: "Installing",
    installed: "Installed",
    failed: "Failed",
    booted: "Installed",
  },
  Installed: { installed: "Installed", booted: "Installed" },
  Failed: { installed: "Installed", failed: "Failed" },
  Unconfirmed: { installed: "Installed", booted: "Installed" },
};

function nextState(state: InstallState, report: MachineReport["state"]): InstallState | undefined {
  return ends[state][report];
}

/** Returns the same object if nothing but the time differs. */
function progressAfter(
  { reported: last, state: former }: LedgerEntry,
  state: InstallState,
  { report, nowMs }: Reporting,
): ReportedProgress | undefined {
  // The end of an install stays as it was reported first.
  if (former === state && former !== "Installing" && report.state !== "booted" && last !== undefined) return last;
  const message = cleanMessage(report.message);
  const progress = cleanProgress(report.progress);
  const next: ReportedProgress = {
    state: report.state,
    ...(progress !== undefined && { progress }),
    ...(message !== undefined && { message }),
    atMs: nowMs,
  };
  const isSame = last?.state === next.state && last.progress === next.progress && last.message === next.message;
  return isSame ? last : next;
}

/** Returns at most 256 characters, without control characters and without halves of characters. */
export function cleanMessage(message: string | undefined): string | undefined {
  if (message === undefined) return undefined;
  // The cut comes first: a message may be long, and each character costs.
  const clean = message
    .slice(0, maxMessageLength * 4)
    .toWellFormed()
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}\uFFFD]+/gu, " ")
    .trim();
  return clean === "" ? undefined : [...clean].slice(0, maxMessageLength).join("");
}

function cleanProgress(progress: number | undefined): number | undefined {
  if (progress === undefined || !Number.isFinite(progress)) return undefined;
  return Math.min(100, Math.max(0, Math.round(progress)));
}

/** Returns the same object if no label changes. A label that expires is renewed in the second half of its time. */
function labelsAfter(labels: LedgerEntry["labels"], { report, nowMs, rules }: Reporting): LedgerEntry["labels"] {
  if (report.labels === undefined || rules === undefined) return labels;
  const ttlMs = rules.ttlSeconds === undefined ? undefined : rules.ttlSeconds * 1_000;
  const all = new Map<string, ReportedLabel>(Object.entries(labels ?? {}));
  let isChanged = false;
  for (const [name, value] of Object.entries(report.labels)) {
    if (!isPermitted(name, value, rules) || isFresh(all.get(name), { value, ttlMs, nowMs })) continue;
    all.set(name, { value, ...(ttlMs !== undefined && { untilMs: nowMs + ttlMs }) });
    isChanged = true;
  }
  return isChanged ? Object.fromEntries(all) : labels;
}

function isPermitted(name: string, value: string, { labels }: ReportRules): boolean {
  if (identityLabels.includes(name) || name.startsWith("davit.")) return false;
  return Object.hasOwn(labels, name) && labels[name]?.includes(value) === true;
}

function isFresh(
  label: ReportedLabel | undefined,
  { value, ttlMs, nowMs }: { readonly value: string; readonly ttlMs: number | undefined; readonly nowMs: number },
): boolean {
  if (label?.value !== value) return false;
  if (ttlMs === undefined) return label.untilMs === undefined;
  return label.untilMs !== undefined && label.untilMs - nowMs > ttlMs / 2;
}
