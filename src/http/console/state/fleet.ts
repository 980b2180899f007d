/**
 * The fleet: one row for each machine that the history, the ledger or an object knows. Rows are made in slices, so that
 * machines are answered in between, and they are kept until something changes. Making them takes at most a tenth of the
 * time, however many browsers look.
 */

import type { Clock } from "../../../lib/clock.ts";
import { nextTurn, Slices } from "../../../lib/slices.ts";
import type { SeenVersion } from "../../../model/cluster-callers.ts";
import type { Labels } from "../../../model/labels/labels.ts";
import { identitiesOf, type MachinePhase } from "../../../model/objects/machine.ts";
import type { LedgerEntry } from "../../../model/permits/permit.ts";
import { bootRefusals, refusalRow } from "../../../model/refusals.ts";
import { missingOf } from "../../../records/history/boots.ts";
import type { HistoryView, PastRequest, RecordedMachine } from "../../../records/history/history-view.ts";
import type { MachineBook } from "../../ops/machine-book.ts";
import { type MachineSubject, machineJson } from "../../ops/machine-report.ts";
import { joinedMachines, seenMachines } from "../../ops/machine-routes.ts";

export interface FleetRow {
  /** How pages name the machine: `namespace/name` of its Machine, its MAC address, its uuid, or its `sentName`. */
  readonly machine: string;
  readonly state: FleetState;
  /** Why somebody may have to act; undefined in a state that needs nobody. */
  readonly why: string | undefined;
  /** `namespace/name` of its Machine. */
  readonly object: string | undefined;
  /** The version of its Machine that the row is of. */
  readonly version: SeenVersion | undefined;
  readonly mac: string | undefined;
  readonly hostname: string | undefined;
  readonly address: string | undefined;
  readonly group: string | undefined;
  readonly profile: string | undefined;
  /** As in the status of a Machine; undefined for a machine that neither an object nor the ledger knows. */
  readonly phase: string | undefined;
  /** What the machine asked for last. */
  readonly stage: string | undefined;
  readonly seenAtMs: number | undefined;
  /** True if its Group needs an approved Machine, and there is none. */
  readonly isUnapproved: boolean;
  readonly isPending: boolean;
  /** The ledger's entries of the machine. */
  readonly entries: readonly LedgerEntry[];
}

/** The fleet at one time. */
export interface FleetMoment {
  /** The last seen first. */
  readonly rows: readonly FleetRow[];
  readonly counts: Readonly<Record<FleetState, number>>;
}

interface FleetOptions {
  readonly history: { current(): Promise<HistoryView>; readonly revision: number };
  /** Undefined without a ledger. */
  readonly book: MachineBook | undefined;
  /** Returns the Profile that a Group names, as `namespace/name`; undefined without such a Group. */
  readonly profileOf: (group: string) => string | undefined;
  /** Returns what is wrong with a Group or its Profile; undefined if a person need not act. */
  readonly problemOf: (group: string, profile: string | undefined) => string | undefined;
  /** Returns a function that names the stages of requests. */
  readonly stages: () => (request: PastRequest, group: string | undefined) => string;
  /** Changes when objects, the ledger or statuses change. */
  readonly revision: () => string;
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
}

/** This many rows take about 5 ms. */
const sliceRows = 200;
/** After the work, nothing is made again for this many times as long as it took. */
const restPerWork = 9;
/** States depend on the time, too: a boot is over after some minutes. */
const maxAgeMs = 10_000;

export class Fleet {
  readonly #options: FleetOptions;
  #made: Promise<FleetMoment> | undefined;
  #revision = "";
  #madeAtMs = 0;
  #restsUntilMs = 0;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  /** Changes when rows may have changed. */
  get revision(): string {
    const { history, revision } = this.#options;
    return `${history.revision} ${revision()}`;
  }

  /** True if `now` returns rows from before the last change: they are being made, or were just made. */
  get isBehind(): boolean {
    return this.#options.clock.monotonicMs() < this.#restsUntilMs && this.revision !== this.#revision;
  }

  /** Returns the rows as they are now; as they were a moment ago, while many change. */
  async now(): Promise<FleetMoment> {
    const nowMs = this.#options.clock.monotonicMs();
    const isOld = this.revision !== this.#revision || nowMs - this.#madeAtMs > maxAgeMs;
    if (this.#made === undefined || (isOld && nowMs >= this.#restsUntilMs)) {
      this.#revision = this.revision;
      this.#madeAtMs = nowMs;
      this.#restsUntilMs = Number.POSITIVE_INFINITY;
      this.#made = this.#make();
    }
    return await this.#made;
  }

  async #make(): Promise<FleetMoment> {
    const { clock, history } = this.#options;
    let workMs = 0;
    try {
      const work = fleetOf(await history.current(), this.#options);
      for (;;) {
        const beganMs = clock.monotonicMs();
        const slice = work.next();
        workMs += clock.monotonicMs() - beganMs;
        if (slice.done === true) return slice.value;
        await nextTurn();
      }
    } finally {
      this.#restsUntilMs = clock.monotonicMs() + workMs * restPerWork;
    }
  }
}

/** Makes the rows. It yields between slices. */
function* fleetOf(view: HistoryView, options: FleetOptions): Generator<undefined, FleetMoment> {
  const slices = new Slices(sliceRows);
  const reading = seenMachines(view);
  let read = reading.next();
  for (; read.done !== true; read = reading.next()) if (slices.isOver(1)) yield;
  const rows: FleetRow[] = [];
  const context = { ...options, nowMs: options.clock.nowMs(), stageOf: options.stages() };
  for (const { subject, seen } of joinedMachines(options.book, read.value)) {
    rows.push(rowOf(context, subject, seen));
    if (slices.isOver(1)) yield;
  }
  rows.sort((one, other) => (other.seenAtMs ?? 0) - (one.seenAtMs ?? 0));
  const counts = Object.fromEntries(fleetStates.map((state) => [state, 0])) as Record<FleetState, number>;
  for (const { state } of rows) counts[state] += 1;
  return { rows, counts };
}

/**
 * Returns the name of a machine that has sent neither a MAC address nor a uuid: `serial=VALUE` or `hostname=VALUE`. So
 * a machine cannot choose the name of a Machine, or of another machine.
 */
export function sentName(labels: Labels): string | undefined {
  const name = ["serial", "hostname"].find((each) => (labels.get(each) ?? "") !== "");
  return name === undefined || identitiesOf(labels).length > 0 ? undefined : `${name}=${labels.get(name)}`;
}

interface RowContext extends FleetOptions {
  readonly nowMs: number;
  readonly stageOf: ReturnType<FleetOptions["stages"]>;
}

function rowOf(context: RowContext, subject: MachineSubject | undefined, seen: RecordedMachine | undefined): FleetRow {
  const { book } = context;
  const line = subject && book && machineJson(book, subject);
  const identities = [...(subject?.identities ?? []), ...identitiesOf(seen?.labels ?? new Map())];
  const group = line?.group ?? seen?.group;
  const profile = line?.profile ?? (group === undefined ? undefined : context.profileOf(group));
  const isUnapproved = line?.needsApproval === true && line.approved !== true;
  const isPending = subject?.pending !== undefined;
  const problem = group === undefined ? undefined : context.problemOf(group, profile);
  const shown = { phase: line?.phase, problem, reported: line?.reported?.message, isUnapproved, isPending };
  const mac = valueIn(identities, "mac/");
  const sent = seen && sentName(seen.labels);
  const machine = line?.name ?? mac ?? valueIn(identities, "uuid/") ?? sent ?? "-";
  const version = subject?.object?.document;
  const named = {
    machine,
    object: line?.name,
    version,
    mac,
    group,
    profile,
    phase: line?.phase,
    isUnapproved,
    isPending,
  };
  const entries = subject?.entries ?? [];
  return { ...named, entries, ...seenPart(seen, group, context), ...stateIn(shown, seen, group, context) };
}

type KnownFacts = Omit<StateFacts, "last" | "ageMs">;

function stateIn(known: KnownFacts, seen: RecordedMachine | undefined, group: string | undefined, context: RowContext) {
  const last = seen && lastOf(seen, group, context);
  const { state, why } = stateOf({ ...known, last, ageMs: seen === undefined ? 0 : context.nowMs - seen.lastSeenAtMs });
  return { state, why };
}

function seenPart(seen: RecordedMachine | undefined, group: string | undefined, { stageOf }: RowContext) {
  const { labels, address, last, lastSeenAtMs: seenAtMs } = seen ?? {};
  return { hostname: labels?.get("hostname"), address, stage: last && stageOf(last, group), seenAtMs };
}

function lastOf({ last }: RecordedMachine, group: string | undefined, { stageOf }: RowContext): StateFacts["last"] {
  const { status, isCut, refusal } = last;
  return { status, isCut, refusal, stage: stageOf(last, group), missing: missingOf(last) };
}

/** @param kind the beginning of the identity, with its slash. */
function valueIn(identities: readonly string[], kind: string): string | undefined {
  const found = identities.find((each) => each.startsWith(kind));
  return found?.slice(found.indexOf("/") + 1);
}

/** What a reader looks for; an absent member matches every machine. */
export interface FleetFilter {
  readonly state?: FleetState | undefined;
  /** A Group's name, or `namespace/name`. */
  readonly group?: string | undefined;
  /** Part of any text that a row shows, in any letter case. */
  readonly text?: string | undefined;
}

/** Returns the rows that a filter selects. */
export function filtered(rows: readonly FleetRow[], { state, group, text }: FleetFilter): readonly FleetRow[] {
  const words = text?.toLowerCase().replaceAll("-", ":") ?? "";
  return rows.filter(
    (row) =>
      (state === undefined || row.state === state) &&
      (group === undefined || row.group === group || row.group?.endsWith(`/${group}`) === true) &&
      (words === "" || textsOf(row).some((each) => each?.toLowerCase().replaceAll("-", ":").includes(words))),
  );
}

function textsOf(row: FleetRow): readonly (string | undefined)[] {
  return [row.machine, row.mac, row.hostname, row.address, row.group, row.profile, row.why];
}

/** The most urgent first. `quiet`: the machine asked nothing for a while, and nobody needs to act. */
export const fleetStates = ["failed", "waiting", "held", "unknown", "installing", "booting", "quiet"] as const;
export type FleetState = (typeof fleetStates)[number];

export interface StateFacts {
  /** Undefined for a machine that neither an object nor the ledger knows. */
  readonly phase: MachinePhase | undefined;
  /** The machine's newest request; undefined if it never asked. */
  readonly last:
    | {
        readonly status: number;
        readonly isCut: boolean;
        readonly refusal: string | undefined;
        readonly stage: string;
        /** The path of the file for which the machine waits. */
        readonly missing?: string | undefined;
      }
    | undefined;
  /** How long ago that was, in milliseconds. */
  readonly ageMs: number;
  /** What is wrong with the machine's Group or Profile, for a person. */
  readonly problem: string | undefined;
  /** What the machine itself said of its install. */
  readonly reported: string | undefined;
  /** True if the machine's Group needs an approved Machine, and there is none. */
  readonly isUnapproved: boolean;
  /** True if the machine waits for a Machine object. */
  readonly isPending: boolean;
}

interface ReasonedState {
  readonly state: FleetState;
  /** Undefined for a state that needs nobody. */
  readonly why?: string;
}

/** A machine that asked within this time is booting. Some servers test memory for minutes between two requests. */
const bootingMs = 10 * 60_000;

/** Returns the state of a machine. */
export function stateOf(facts: StateFacts): ReasonedState {
  const { phase, problem, reported, last, ageMs, isUnapproved, isPending } = facts;
  if (phase === "Held") return held;
  if (phase === "Installing") return { state: "installing" };
  if (phase === "Failed") return { state: "failed", why: withDetail("the install failed", reported) };
  if (phase === "Unconfirmed") return { state: "failed", why: withDetail("the install was not confirmed", reported) };
  if (problem !== undefined) return { state: "failed", why: problem };
  const refused = last && refusedState(last);
  if (refused !== undefined) return refused;
  if (isUnapproved) return { state: "waiting", why: bootRefusals.unapproved.words };
  if (isPending) return { state: "waiting", why: "waits for a Machine object" };
  if (last === undefined || ageMs > bootingMs || phase === "Booted") return { state: "quiet" };
  return { state: "booting" };
}

/** Returns the state of a machine whose last request failed; undefined for any other. */
function refusedState({
  status,
  refusal,
  stage,
  isCut,
  missing,
}: NonNullable<StateFacts["last"]>): ReasonedState | undefined {
  if (status < 400) return isCut ? { state: "failed", why: `cut in ${stage}` } : undefined;
  const { state, words } = refusal === undefined ? unnamed(status) : (refusalRow(refusal) ?? later(refusal));
  if (state === undefined) return undefined;
  if (state === "held") return held;
  if (state === "unknown") return { state, why: "no Group selects it" };
  const what = missing === undefined ? words : `${words}: ${missing}`;
  return { state, why: `${stage}: ${status} ${what}`.trimEnd() };
}

/** An error that is no refusal. */
function unnamed(status: number) {
  return { state: status === 503 ? "waiting" : "failed", words: "" } as const;
}

/** A refusal that only another davit knows. */
function later(refusal: string) {
  return { state: "failed", words: refusal } as const;
}

const held: ReasonedState = { state: "held", why: "held by its Machine or its Group" };

function withDetail(what: string, detail: string | undefined): string {
  return detail === undefined ? what : `${what}: ${detail}`;
}
