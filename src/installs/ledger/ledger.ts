/**
 * The ledger: which machines have spent which permits. It is the source of truth about installs, in a store of its own.
 * Objects grant an install, the ledger records that it was claimed, and reports close it.
 *
 * Any member of the store may log. Each batch has conditions, so two members never both log a claim. If a ledger is
 * lost or older than its mark, one with another id begins. Grants name one ledger, so lost or restored state opens
 * nothing.
 */

import { LRUCache } from "lru-cache";
import type { Clock } from "../../lib/clock.ts";
import type { Ports } from "../../lib/ports.ts";
import type { Soon } from "../../lib/soon.ts";
import { TokenBucket } from "../../lib/token-bucket.ts";
import { type LedgerEntry, type NamedGrant, type ReportRules, reportStates } from "../../model/permits/permit.ts";
import type { DeskAnswer, DeskAsk, MachineReport, PermitDesk, ReportOutcome } from "../../model/permits/permit-desk.ts";
import { recognised } from "../../model/permits/recognised.ts";
import type { Store } from "../../store/store.ts";
import { Beginning } from "./beginning.ts";
import { change, plannedAdoption } from "./claim.ts";
import { InstallClaims } from "./claims.ts";
import { openSooner, plannedForgetting } from "./grants.ts";
import { KnownLedger } from "./known-ledger.ts";
import { adoptedPath, encodeAdopted, secretPath } from "./ledger-documents.ts";
import { answerWithinMs, type Decision, LedgerLog } from "./ledger-log.ts";
import { type LedgerMark, MarkKeeper } from "./mark-keeper.ts";
import type { MarkProblem } from "./mark-problem.ts";
import { reported } from "./report.ts";
import { entryIdOf, isClaimTokenOf, isTokenOf, type TokenKey } from "./report-token.ts";
import { Ticker } from "./ticker.ts";
import { WitnessedClaims } from "./witnessed-claims.ts";

export interface LedgerOptions extends Pick<Ports, "clock" | "log"> {
  /** A store that only the ledger writes. The ledger does not stop it. */
  readonly store: Store;
  readonly random: (bytes: number) => Uint8Array;
  /** Shows whether the store was rolled back. Without it, every ledger is trusted. */
  readonly mark?: LedgerMark | undefined;
  /** Returns which labels the machines of a Profile (`namespace/name`) may report; none unless given. */
  readonly rulesOf?: (profile: string) => ReportRules | undefined;
  /** 65,536 unless given. */
  readonly maxEntries?: number;
}

/**
 * - `forgotten`: the machine has no entry any more.
 * - `closed`: the machine counts as never installed, but a grant that is not over stays spent.
 * - `crowded`: so many grants are open that the entry cannot record them all.
 * - `late`: the ledger cannot be written, or does not know the grants yet.
 */
type ForgettingOutcome = "forgotten" | "closed" | "unknown" | "crowded" | "late";
type AdoptionOutcome = "adopted" | "ambiguous" | "full" | "late";

const maxSpentByForgetting = 1_000;
const clockAheadMs = 300_000;

export class Ledger implements PermitDesk {
  /** What the ledger says: for selection and statuses. */
  readonly known: KnownLedger;
  readonly #options: LedgerOptions;
  readonly #log: LedgerLog;
  readonly #marks: MarkKeeper | undefined;
  readonly #beginning: Beginning;
  readonly #claims: InstallClaims;
  readonly #reports: Reports;
  readonly #ticker: Ticker;
  #knowsGrants = false;
  #unfollow: () => void = () => undefined;

  private constructor(options: LedgerOptions) {
    const { store, clock, random, log, mark, rulesOf = () => undefined, maxEntries } = options;
    this.#options = options;
    const trouble = () => this.#problem;
    const known = new KnownLedger({ clock, trouble, ...(maxEntries !== undefined && { maxEntries }) });
    this.known = known;
    this.#marks = mark && new MarkKeeper({ mark, clock, log, meta: () => known.meta });
    const logged = (index: number) => {
      if (this.#beginning.isTrusted) this.#marks?.note(index);
    };
    if (mark?.isOwn === true) known.onChange(() => logged(store.indexes.storeIndex));
    const isTrusted = () => this.#beginning.isTrusted;
    this.#log = new LedgerLog({ store, known, clock, random, isTrusted, logged });
    const cover = async (index: number, forMs?: number) => (await this.#marks?.cover(index, forMs)) ?? true;
    this.#beginning = new Beginning({ store, known, clock, random, log, mark, cover, ledgerLog: this.#log });
    const shared = { known, log: this.#log, clock, isTrusted };
    const tokenKey = () => this.#tokenKey;
    this.#claims = new InstallClaims({
      ...shared,
      cover: (index) => cover(index, answerWithinMs),
      tokenKey,
      witnessed: new WitnessedClaims(known, clock),
    });
    this.#reports = new Reports({ ...shared, tokenKey, rulesOf });
    this.#ticker = new Ticker(shared);
  }

  /**
   * Opens the ledger in a store, and begins one if there is none. If the store or the mark cannot be reached, the
   * ledger keeps trying, and grants nothing meanwhile.
   */
  static async open(options: LedgerOptions): Promise<Ledger> {
    const ledger = new Ledger(options);
    ledger.#unfollow = options.store.follow("/davit", ledger.known);
    await ledger.#beginning.start();
    options.store.onLeadership((isLeading) => ledger.#ticker.lead(isLeading));
    return ledger;
  }

  /** The ledger that grants must name; undefined while none is trusted. */
  get id(): string | undefined {
    return this.#beginning.isTrusted ? this.known.id : undefined;
  }

  /** See `PermitDesk`. */
  ask(question: DeskAsk): Soon<DeskAnswer> {
    return this.#claims.ask(question);
  }

  /** See `PermitDesk`. */
  report(token: string, report: MachineReport, address: string | undefined): Promise<ReportOutcome> {
    return this.#reports.report(token, report, address);
  }

  /** The grants of all objects: the ledger logs when one of them ends. */
  grantsChanged(grants: readonly NamedGrant[]): void {
    this.#knowsGrants = true;
    this.#ticker.grantsChanged(grants);
  }

  /**
   * Makes machines of a Group that have no entry count as installed until a time. Each one that asks before it gets an
   * entry, and stays installed.
   * @param group `namespace/name`. @param untilMs Unix milliseconds; 0 ends the adoption.
   */
  async adopt(group: string, untilMs: number): Promise<"adopted" | "late"> {
    const value = encodeAdopted({ untilMs });
    const outcome = await this.#log.carryOut(
      (): Decision<"adopted"> => ({
        kind: "closing",
        commands: [{ kind: "set", path: adoptedPath(group), value }],
        result: "adopted",
      }),
    );
    return outcome ?? "late";
  }

  /**
   * Records that a machine is installed, without an install by davit. Its entry gets all these identities.
   * @param group `namespace/name`, or empty. @param isListed true if a Machine lists them: then they are one machine.
   */
  async adoptMachine(identities: readonly string[], group: string, isListed = false): Promise<AdoptionOutcome> {
    const { known } = this;
    const asked = { identities, ...(isListed && { listed: identities }) };
    const machine = { ...asked, group, profile: "", address: undefined };
    const outcome = await this.#log.carryOut((): Decision<AdoptionOutcome> => {
      const { isClear, entries } = recognised(asked, known);
      if (!isClear) return { kind: "closing", commands: [], result: "ambiguous" };
      const isFull = entries.length === 0 && known.isFull;
      if (isFull) return { kind: "closing", commands: [], result: "full" };
      const planned = plannedAdoption(machine, entries, this.#log.writing);
      return { kind: "closing", commands: planned?.commands ?? [], result: "adopted" };
    });
    return outcome ?? "late";
  }

  /**
   * Forgets a machine, so that it counts as never installed. Forgetting opens nothing: every grant that is spent or
   * open stays spent or becomes so. A higher generation installs the machine.
   * @param which the id of an entry, or identities.
   */
  async forget(which: string | readonly string[]): Promise<ForgettingOutcome> {
    const outcome = await this.#log.carryOut(() => this.#decideForget(which));
    return outcome ?? "late";
  }

  /** One line for each problem that needs an operator. */
  get problems(): readonly string[] {
    const { known } = this;
    const aheadMs = known.nowMs - this.#options.clock.nowMs();
    return [
      ...(known.unreadable > 0 ? ["Ledger: a later davit has written it, so nothing installs: start that davit"] : []),
      ...(this.#problem === undefined ? [] : [`Ledger: nothing installs: ${this.#problem.text}`]),
      ...(known.isFull ? ["Ledger: it is full: forget machines that are gone"] : []),
      ...(aheadMs > clockAheadMs ? ["Ledger: this computer's clock is behind the ledger's: correct the clock"] : []),
    ];
  }

  /** How many entries are in each state. */
  measure(): ReadonlyMap<LedgerEntry["state"], number> {
    const counts = new Map<LedgerEntry["state"], number>();
    for (const { state } of this.known.entries.values()) counts.set(state, (counts.get(state) ?? 0) + 1);
    return counts;
  }

  /** Ends the ledger's own writes; idempotent. Stop the store afterwards. */
  async stop(): Promise<void> {
    await this.#ticker.stop();
    await this.#marks?.stop();
    await this.#beginning.stop();
    this.#unfollow();
  }

  get #problem(): MarkProblem | undefined {
    return this.#beginning.problem ?? this.#marks?.problem;
  }

  /** 64 hexadecimal digits that only davit knows; undefined for a ledger that has not begun. */
  get secret(): string | undefined {
    return this.#options.store.getFile(secretPath)?.value;
  }

  get #tokenKey(): TokenKey | undefined {
    const { secret } = this;
    const { id } = this.known;
    return id === undefined || secret === undefined ? undefined : { ledgerId: id, secret };
  }

  #decideForget(which: string | readonly string[]): Decision<ForgettingOutcome | undefined> {
    const { known } = this;
    const found = typeof which === "string" ? known.entries.get(which) : undefined;
    const entries = typeof which === "string" ? (found === undefined ? [] : [found]) : known.entriesOf(which);
    const answered = (result: ForgettingOutcome) => ({ kind: "closing" as const, commands: [], result });
    if (entries.length === 0) return answered("unknown");
    if (!this.#knowsGrants || this.id === undefined) return answered("late");
    const { grants } = this.#ticker;
    if (openSooner(grants, known).length > maxSpentByForgetting) return answered("crowded");
    const commands = entries.flatMap((entry) => plannedForgetting(entry, grants, known, this.#log.writing));
    const isRemoved = commands.every(({ kind }) => kind === "compareAndDelete");
    // A removed entry no longer keeps its times.
    return {
      kind: "closing",
      commands: [this.#log.clockMark(), ...commands],
      result: isRemoved ? "forgotten" : "closed",
    };
  }
}

interface ReportsOptions {
  readonly known: KnownLedger;
  readonly log: LedgerLog;
  readonly clock: Clock;
  readonly tokenKey: () => TokenKey | undefined;
  /** Returns which labels the machines of a Profile (`namespace/name`) may set. */
  readonly rulesOf: (profile: string) => ReportRules | undefined;
}

const reportsPerSecond = 500;
// Installers report the end right after progress, and many of them only once.
const burstOfOne = 5;
/** Beyond so many limits of single tokens, the oldest is dropped: after five seconds each is full again. */
const maxLimits = 4_096;

/** Takes machines' reports: checks the token, limits their rate, and logs what a report changes. */
class Reports {
  readonly #options: ReportsOptions;
  readonly #all: TokenBucket;
  /** By entry. */
  readonly #each = new LRUCache<string, TokenBucket>({ max: maxLimits });

  constructor(options: ReportsOptions) {
    this.#options = options;
    this.#all = new TokenBucket({ clock: options.clock, perSecond: reportsPerSecond, burst: reportsPerSecond });
  }

  /** See `PermitDesk`. */
  async report(token: string, report: MachineReport, address: string | undefined): Promise<ReportOutcome> {
    const { log } = this.#options;
    if (!reportStates.includes(report.state)) return "unknown";
    const entry = this.#entryOf(token, report);
    if (entry === undefined) return "unknown";
    if (!this.#limitOf(entry.id).tryTake() || !this.#all.tryTake()) return "tooMany";
    const outcome = await log.inTime(log.carryOut(() => this.#decide(token, report, address)));
    return outcome ?? "late";
  }

  #decide(token: string, report: MachineReport, address: string | undefined): Decision<ReportOutcome> {
    const { log, rulesOf } = this.#options;
    const entry = this.#entryOf(token, report);
    if (entry === undefined) return { kind: "closing", commands: [], result: "unknown" };
    const { writing } = log;
    const { nowMs } = writing;
    const result = reported(entry, { report, address, nowMs, rules: rulesOf(entry.profile) });
    if (result === "final") return { kind: "closing", commands: [], result };
    const commands = result.isChanged ? [change(result.entry, writing)] : [];
    return { kind: "closing", commands, result: "taken" };
  }

  #entryOf(token: string, report: MachineReport): LedgerEntry | undefined {
    const entry = this.#options.known.entries.get(entryIdOf(token) ?? "");
    const key = this.#options.tokenKey();
    if (entry === undefined || key === undefined) return undefined;
    const isOfEntry = isTokenOf(key, entry, token) || (isOnlyBeginning(report) && isClaimTokenOf(key, entry, token));
    return isOfEntry ? entry : undefined;
  }

  #limitOf(id: string): TokenBucket {
    const { clock } = this.#options;
    const limit = this.#each.get(id) ?? new TokenBucket({ clock, perSecond: 1, burst: burstOfOne });
    this.#each.set(id, limit);
    return limit;
  }
}

/** True for a report that says nothing but that the install begins. */
function isOnlyBeginning({ state, ...more }: MachineReport): boolean {
  return state === "installing" && Object.values(more).every((value) => value === undefined);
}
