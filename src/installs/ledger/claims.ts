/** Answers machines that ask for an install, as `verdictOf` decides. It logs a claim before it answers. */

import type { Clock } from "../../lib/clock.ts";
import type { Soon } from "../../lib/soon.ts";
import { networkOf } from "../../lib/text/address.ts";
import { SharedBucket } from "../../lib/token-bucket.ts";
import { type LedgerEntry, sealRefusal, type Verdict, verdictOf } from "../../model/permits/permit.ts";
import type { DeskAnswer, DeskAsk } from "../../model/permits/permit-desk.ts";
import { recognised } from "../../model/permits/recognised.ts";
import {
  areClaimedTogether,
  change,
  isNewAddress,
  isOpen,
  plannedAdoption,
  plannedClaim,
  seenAt,
  spentAs,
} from "./claim.ts";
import { endingCommands } from "./grants.ts";
import type { KnownLedger } from "./known-ledger.ts";
import { entryPath } from "./ledger-documents.ts";
import type { Decision, LedgerLog } from "./ledger-log.ts";
import { reportTokenOf, type TokenKey } from "./report-token.ts";
import type { WitnessedClaims } from "./witnessed-claims.ts";

interface InstallClaimsOptions {
  readonly known: KnownLedger;
  readonly log: LedgerLog;
  readonly clock: Clock;
  /** False while the ledger may have been rolled back or replaced. Then nothing is granted. */
  readonly isTrusted: () => boolean;
  /** Resolves when the mark outside the store covers an index; with false if no machine waits for it any more. */
  readonly cover: (index: number) => Promise<boolean>;
  readonly tokenKey: () => TokenKey | undefined;
  readonly witnessed: WitnessedClaims;
}

const claimsPerSecond = 50;
/** After a pause, one client gets half of it at once, such as a rack behind one address. */
const burst = 100;

type Granted = { readonly kind: "granted"; readonly entry: LedgerEntry };
type SettledVerdict = Exclude<Verdict, { readonly kind: "claim" }>;

const late: DeskAnswer = { kind: "late" };

export class InstallClaims {
  readonly #options: InstallClaimsOptions;
  readonly #bucket: SharedBucket;
  /** How many requests may be logging a new entry. */
  #beginning = 0;

  constructor(options: InstallClaimsOptions) {
    this.#options = options;
    this.#bucket = new SharedBucket({ clock: options.clock, perSecond: claimsPerSecond, burst });
  }

  /** See `PermitDesk`. */
  ask(question: DeskAsk): Soon<DeskAnswer> {
    const { known, isTrusted, log } = this.#options;
    if (![...question.identities, ...(question.listed ?? [])].every(isIdentity)) return refusedIdentity;
    if (!isTrusted()) return this.#answerUntrusted(question);
    const verdict = verdictOf(question, known);
    if (verdict.kind === "refused") return question.mayClaim ? this.#afterEndings(question, verdict) : verdict;
    if (verdict.kind === "disk") {
      if (question.mayClaim) this.#note(question);
      return verdict;
    }
    return log.inTime(this.#grant(question)).then((answer) => answer ?? late);
  }

  /** Grants nothing. A machine that boots its disk still does so. */
  #answerUntrusted(question: DeskAsk): DeskAnswer {
    const verdict = verdictOf({ ...question, grants: [] }, this.#options.known);
    if (verdict.kind === "disk") return verdict;
    return this.#options.known.id === undefined ? { kind: "refused", why: "noLedger" } : late;
  }

  /** Answers that a grant is over only after this is logged: then a clock that is set back cannot open it again. */
  #afterEndings({ grants }: DeskAsk, answer: DeskAnswer): Soon<DeskAnswer> {
    const { known, log, cover } = this.#options;
    const endings = () => endingCommands(grants, known, (path) => log.indexOf(path), grants.length);
    if (endings().length === 0) return answer;
    const decide = (): Decision<DeskAnswer> => ({ kind: "closing", commands: endings(), result: answer });
    const work = async () => {
      const logged = await log.carryOut(decide);
      return (await cover(log.index)) ? logged : undefined;
    };
    return log.inTime(work()).then((logged) => logged ?? late);
  }

  async #grant(question: DeskAsk): Promise<DeskAnswer | undefined> {
    const { log, cover } = this.#options;
    const answer = await this.#decideInTurn(question);
    if (answer?.kind !== "granted") return answer;
    const { entry } = answer;
    if (!(await cover(log.indexOf(entryPath(entry.id))))) return undefined;
    return this.#isStillOpen(question, entry) ? this.#withToken(answer) : undefined;
  }

  async #decideInTurn(question: DeskAsk): Promise<SettledVerdict | undefined> {
    // A claim that is decided again needs no second token.
    const token = { isTaken: false };
    this.#beginning += 1;
    try {
      return await this.#options.log.carryOut(() => this.#decide(question, token));
    } finally {
      this.#beginning -= 1;
    }
  }

  /** False if a report, a config or another ledger has closed the claim meanwhile. */
  #isStillOpen({ purpose }: DeskAsk, { id, claimedAtMs }: LedgerEntry): boolean {
    const { known, isTrusted } = this.#options;
    const now = known.entries.get(id);
    if (now === undefined || now.claimedAtMs !== claimedAtMs || !isTrusted()) return false;
    return purpose === "script" ? now.state === "Claimed" : isOpen(now);
  }

  #withToken(answer: Granted): DeskAnswer | undefined {
    const key = this.#options.tokenKey();
    return key && { ...answer, reportToken: reportTokenOf(key, answer.entry) };
  }

  #decide(question: DeskAsk, token: { isTaken: boolean }): Decision<SettledVerdict | undefined> {
    const { known, isTrusted } = this.#options;
    if (!isTrusted()) return answered(undefined);
    const verdict = verdictOf(question, known);
    if (verdict.kind === "granted") return this.#decideGranted(question, verdict);
    if (verdict.kind !== "claim") return answered(verdict);
    if (!question.mayClaim) return answered({ kind: "refused", why: "notClaimed" });
    const { entries } = recognised(question, known);
    // `#beginning` counts this request, too.
    const isFull = known.entries.size + this.#beginning > known.maxEntries;
    if (entries.length === 0 && isFull) return answered({ kind: "refused", why: "full" });
    token.isTaken ||= this.#bucket.tryTake(clientOf(question));
    if (!token.isTaken) return answered(undefined);
    const { entry, commands } = plannedClaim(question, verdict.grants, entries, this.#options.log.writing);
    return {
      kind: "claim",
      commands: [this.#options.log.sameLedger(), ...commands],
      result: { kind: "granted", entry },
    };
  }

  #decideGranted(question: DeskAsk, { entry }: Granted): Decision<SettledVerdict | undefined> {
    const { known } = this.#options;
    const isOfFormerLedger = entry.claimedAtMs < (known.meta?.beganAtMs ?? 0);
    if (isOfFormerLedger) return answered({ kind: "refused", why: "over" });
    if (question.isSealed) {
      const why = sealRefusal(entry, question.address);
      if (why !== undefined) return this.#decideSealed(question, entry, why);
    }
    const { entries } = recognised(question, known);
    const isRepeatable = question.purpose === "config" || this.#isRepeatable(entry, entries);
    if (isRepeatable === true) return this.#decideAgain(question, entry, entries);
    return answered(isRepeatable === "maybe" ? undefined : { kind: "disk" });
  }

  /** Refuses a text to an address. If it is not the claiming one, the text is closed for the rest of the install. */
  #decideSealed(
    { mayClaim, address }: DeskAsk,
    entry: LedgerEntry,
    why: NonNullable<ReturnType<typeof sealRefusal>>,
  ): Decision<SettledVerdict> {
    const result = { kind: "refused", why } as const;
    if (why !== "otherAddress" || !mayClaim || address === undefined) return answered(result);
    const commands = [change({ ...entry, otherAddress: address }, this.#options.log.writing)];
    return { kind: "closing", commands, result };
  }

  /** The first config that a machine reads ends the time in which the script is repeated. */
  #decideAgain(
    { purpose, mayClaim, address }: DeskAsk,
    entry: LedgerEntry,
    entries: readonly LedgerEntry[],
  ): Decision<SettledVerdict> {
    const { writing } = this.#options.log;
    const after = (each: LedgerEntry) =>
      purpose === "config" && each.state === "Claimed" ? begun(each, writing) : each;
    // A Machine may list identities that claimed as different machines: all of them have begun, and have spent this
    // grant.
    const others = entries
      .filter((other) => other !== entry)
      .map((each) => ({ each, next: after(spentAs(each, entry)) }));
    const changed = others.filter(({ each, next }) => each !== next);
    const begins = after(entry) !== entry || changed.length > 0;
    if (!mayClaim || !(begins || isNewAddress(entry, address))) return answered({ kind: "granted", entry });
    const next = after(seenAt(entry, address));
    const commands = [change(next, writing), ...changed.map((each) => change(each.next, writing))];
    return { kind: "closing", commands, result: { kind: "granted", entry: next } };
  }

  #isRepeatable(entry: LedgerEntry, entries: readonly LedgerEntry[]): boolean | "maybe" {
    return areClaimedTogether(entry, entries) && this.#options.witnessed.isRepeatable(entry);
  }

  /**
   * Records a machine of an adopted Group, in the background. A machine that has an entry gets no further identity:
   * anybody can send one, and so could join two machines.
   */
  #note(question: DeskAsk): void {
    if (!this.#isToAdopt(question)) return;
    const { known, log } = this.#options;
    if (known.entries.size + this.#beginning >= known.maxEntries || !this.#bucket.tryTake(clientOf(question))) return;
    this.#beginning += 1;
    const decide = (): Decision<undefined> => {
      const planned = this.#isToAdopt(question) ? plannedAdoption(question, [], log.writing) : undefined;
      return { kind: "closing", commands: planned?.commands ?? [], result: undefined };
    };
    void log.carryOut(decide).finally(() => {
      this.#beginning -= 1;
    });
  }

  /** True for a machine of an adopted Group without an entry of any of its identities. */
  #isToAdopt(question: DeskAsk): boolean {
    const { known } = this.#options;
    const { isClear, entries } = recognised(question, known);
    return isClear && entries.length === 0 && known.nowMs < known.adoptedUntilMs(question.group);
  }
}

function begun(entry: LedgerEntry, { nowMs }: { readonly nowMs: number }): LedgerEntry {
  return { ...entry, state: "Installing", changedAtMs: Math.max(nowMs, entry.changedAtMs) };
}

const refusedIdentity: DeskAnswer = { kind: "refused", why: "noIdentity" };
// A machine may send any text, and longer ones would fill the ledger.
const identityForm = /^(?:uuid|mac)\/[0-9a-f:-]{1,64}$/;

/** Clients share the rate of claims, so that nobody who invents machines keeps others waiting. */
function clientOf({ address }: DeskAsk): string | undefined {
  return address === undefined ? undefined : networkOf(address);
}

function isIdentity(identity: string): boolean {
  return identityForm.test(identity);
}

function answered<Result>(result: Result): Decision<Result> {
  return { kind: "closing", commands: [], result };
}
