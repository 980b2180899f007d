/** Takes machines' reports: checks the token, limits their rate, and logs what a report changes. */

import { LRUCache } from "lru-cache";
import type { Clock } from "../../lib/clock.ts";
import { TokenBucket } from "../../lib/token-bucket.ts";
import { type LedgerEntry, type ReportRules, reportStates } from "../../model/permits/permit.ts";
import type { MachineReport, ReportOutcome } from "../../model/permits/permit-desk.ts";
import { change } from "./claim.ts";
import type { KnownLedger } from "./known-ledger.ts";
import type { Decision, LedgerLog } from "./ledger-log.ts";
import { reported } from "./report.ts";
import { entryIdOf, isClaimTokenOf, isTokenOf, type TokenKey } from "./report-token.ts";

export interface ReportsOptions {
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

export class Reports {
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
