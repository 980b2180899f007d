/** Answers machines that ask for an install: see `verdictOf`. It claims, and answers only what is logged. */

import type { Clock } from "../lib/clock.ts";
import type { Soon } from "../lib/soon.ts";
import { TokenBucket } from "../lib/token-bucket.ts";
import { knownEntries, type LedgerEntry, type Verdict, verdictOf } from "../model/permit.ts";
import type { DeskAnswer, DeskAsk } from "../model/permit-desk.ts";
import { change, isNewAddress, isOpen, type PlannedEntry, plannedAdoption, plannedClaim, seenAt } from "./claim.ts";
import type { KnownLedger } from "./known-ledger.ts";
import { entryPath } from "./ledger-documents.ts";
import type { Decision, LedgerLog } from "./ledger-log.ts";
import { reportTokenOf, type TokenKey } from "./report-token.ts";

export interface InstallClaimsOptions {
  readonly known: KnownLedger;
  readonly log: LedgerLog;
  readonly clock: Clock;
  /** False while it is not certain that the ledger is whole. Then nothing is granted. */
  readonly isTrusted: () => boolean;
  /** Resolves when the mark outside the store covers an index; with false if it never will. */
  readonly cover: (index: number) => Promise<boolean>;
  readonly tokenKey: () => TokenKey | undefined;
}

/** The most entries of a ledger. */
export const maxEntries = 65_536;
const claimsPerSecond = 50;

type Granted = { readonly kind: "granted"; readonly entry: LedgerEntry };
type SettledVerdict = Exclude<Verdict, { readonly kind: "claim" }>;

const late: DeskAnswer = { kind: "late" };

export class InstallClaims {
  readonly #options: InstallClaimsOptions;
  readonly #bucket: TokenBucket;
  /** How many new entries are being logged. */
  #beginning = 0;

  constructor(options: InstallClaimsOptions) {
    this.#options = options;
    this.#bucket = new TokenBucket({ clock: options.clock, perSecond: claimsPerSecond, burst: claimsPerSecond });
  }

  /** See `PermitDesk`. */
  ask(question: DeskAsk): Soon<DeskAnswer> {
    const { known, isTrusted, log } = this.#options;
    if (![...question.identities, ...(question.listed ?? [])].every(isIdentity)) return refusedIdentity;
    if (!isTrusted()) return this.#answerUntrusted(question);
    const verdict = verdictOf(question, known);
    if (verdict.kind === "refused") return verdict;
    if (verdict.kind === "disk") {
      if (question.mayClaim) this.#noteAdopted(question);
      return verdict;
    }
    return log.inTime(this.#grant(question)).then((answer) => answer ?? late);
  }

  /** Nothing is granted, but a disk boots in any case. */
  #answerUntrusted(question: DeskAsk): DeskAnswer {
    const verdict = verdictOf({ ...question, grants: [] }, this.#options.known);
    if (verdict.kind === "disk") return verdict;
    return this.#options.known.id === undefined ? { kind: "refused", why: "noLedger" } : late;
  }

  async #grant(question: DeskAsk): Promise<DeskAnswer | undefined> {
    const { log, cover, tokenKey, known } = this.#options;
    // A claim that is decided again needs no second token.
    const token = { isTaken: false };
    const answer = await log.carryOut(() => this.#decide(question, token));
    if (answer?.kind !== "granted") return answer;
    const { entry } = answer;
    if (!(await cover(log.indexOf(entryPath(entry.id))))) return undefined;
    const key = tokenKey();
    // A report may have ended the install meanwhile, and another ledger may have begun.
    const now = known.entries.get(entry.id);
    if (now?.claimedAtMs !== entry.claimedAtMs || !isOpen(now) || key === undefined || !this.#options.isTrusted())
      return undefined;
    return { ...answer, reportToken: reportTokenOf(key, entry) };
  }

  #decide(question: DeskAsk, token: { isTaken: boolean }): Decision<SettledVerdict | undefined> {
    const { known, isTrusted } = this.#options;
    if (!isTrusted()) return answered(undefined);
    const verdict = verdictOf(question, known);
    if (verdict.kind === "granted") return this.#decideGranted(question, verdict);
    if (verdict.kind !== "claim") return answered(verdict);
    if (!question.mayClaim) return answered({ kind: "refused", why: "notClaimed" });
    const entries = knownEntries(question, known) ?? [];
    if (entries.length === 0 && known.entries.size >= maxEntries) return answered({ kind: "refused", why: "full" });
    token.isTaken ||= this.#bucket.tryTake();
    if (!token.isTaken) return answered(undefined);
    const { entry, commands } = plannedClaim(question, verdict.grants, entries, this.#options.log.writing);
    return {
      kind: "claim",
      commands: [this.#options.log.sameLedger(), ...commands],
      result: { kind: "granted", entry },
    };
  }

  /** The first config that a machine reads ends the time in which the script is repeated. */
  #decideGranted(question: DeskAsk, verdict: Granted): Decision<SettledVerdict> {
    const { entry } = verdict;
    const begins = question.purpose === "config" && entry.state === "Claimed";
    if (!question.mayClaim || !(begins || isNewAddress(entry, question.address))) return answered(verdict);
    const { writing } = this.#options.log;
    const seen = seenAt(entry, question.address);
    const begun: LedgerEntry = begins ? { ...seen, state: "Installing", changedAtMs: writing.nowMs } : seen;
    return { kind: "closing", commands: [change(begun, writing)], result: { kind: "granted", entry: begun } };
  }

  /** Records a machine of an adopted Group: it stays installed when the time of the adoption is over. */
  #noteAdopted(question: DeskAsk): void {
    const { known, log } = this.#options;
    if (known.entriesOf([...question.identities, ...(question.listed ?? [])]).length > 0) return;
    if (known.entries.size + this.#beginning >= maxEntries || !this.#bucket.tryTake()) return;
    this.#beginning += 1;
    const decide = (): Decision<undefined> => {
      const entries = knownEntries(question, known);
      const planned: PlannedEntry | undefined =
        entries?.length === 0 ? plannedAdoption(question, entries, log.writing) : undefined;
      return { kind: "closing", commands: planned?.commands ?? [], result: undefined };
    };
    void log.carryOut(decide).finally(() => {
      this.#beginning -= 1;
    });
  }
}

const refusedIdentity: DeskAnswer = { kind: "refused", why: "noIdentity" };
// Whatever a machine sends: a longer text would fill the ledger.
const identityForm = /^(?:uuid|mac)\/[0-9a-f:-]{1,64}$/;

function isIdentity(identity: string): boolean {
  return identityForm.test(identity);
}

function answered<Result>(result: Result): Decision<Result> {
  return { kind: "closing", commands: [], result };
}
