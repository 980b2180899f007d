/**
 * The `PermitDesk` of a follower and of a boot thread. It never writes: it asks the ledger's writer, and compares what
 * the writer chose with its own choice. While the writer is away, slow or of an earlier version, installs wait. Disks
 * boot all the same, by the copy of the ledger at any age.
 */

import type { Soon } from "../lib/soon.ts";
import { isStillGranted, type LedgerEntry, type LedgerView, sealRefusal, verdictOf } from "../model/permits/permit.ts";
import type { DeskAnswer, DeskAsk, MachineReport, PermitDesk, ReportOutcome } from "../model/permits/permit-desk.ts";
import type { AskWriter, PermitReply } from "../model/permits/permit-wire.ts";
import { recognised } from "../model/permits/recognised.ts";

interface RemoteDeskOptions {
  readonly askWriter: AskWriter;
  /** The follower's copy of the ledger. */
  readonly view: LedgerView;
  /** True while that copy is known to equal the writer's ledger. Then the writer need not be asked for a refusal. */
  readonly isCurrent: () => boolean;
}

const late: DeskAnswer = { kind: "late" };

export class RemoteDesk implements PermitDesk {
  readonly isRemote = true;
  readonly #options: RemoteDeskOptions;

  constructor(options: RemoteDeskOptions) {
    this.#options = options;
  }

  ask(question: DeskAsk): Soon<DeskAnswer> {
    const { view, isCurrent } = this.#options;
    const verdict = verdictOf(question, view);
    if (verdict.kind === "disk") {
      // The writer records a machine of an adopted Group.
      const isKnown = view.entriesOf([...question.identities, ...(question.listed ?? [])]).length > 0;
      if (question.mayClaim && !isKnown) void this.#ask(question);
      return verdict;
    }
    // A config may come before the copy has the claim.
    if (verdict.kind === "refused" && question.purpose === "script" && isCurrent()) return verdict;
    return this.#ask(question);
  }

  async report(token: string, report: MachineReport, address: string | undefined): Promise<ReportOutcome> {
    return (await this.#options.askWriter("report", { kind: "report", token, report, address })) ?? "late";
  }

  async #ask(question: DeskAsk): Promise<DeskAnswer> {
    const { rawQuery, purpose, mayClaim, isSealed, address } = question;
    const reply = await this.#options.askWriter("permit", { rawQuery, purpose, mayClaim, isSealed, address });
    return reply === undefined ? late : checkedReply(question, reply);
  }
}

/**
 * Returns the writer's answer if writer and follower chose the same. If they differ, one of them has older objects, and
 * the machine asks again.
 */
function checkedReply(question: DeskAsk, reply: PermitReply): DeskAnswer {
  if (reply.kind === "late" || reply.group !== question.group || reply.profile !== question.profile) return late;
  if (reply.kind === "disk") return { kind: "disk" };
  if (reply.kind === "refused") return { kind: "refused", why: reply.why };
  const { entry, reportToken } = reply;
  // A writer of an earlier version does not know the rule.
  const isForAddress = !question.isSealed || sealRefusal(entry, question.address) === undefined;
  const isRight = isOf(question, entry) && isGranted(question, entry) && isForAddress;
  return isRight ? { kind: "granted", entry, reportToken } : late;
}

/** True if the entry counts for the machine (`recognised`). A writer of an earlier version does not check this. */
function isOf(question: DeskAsk, entry: LedgerEntry): boolean {
  const entriesOf = (identities: readonly string[]) =>
    identities.some((identity) => entry.identities.includes(identity)) ? [entry] : [];
  const { isClear, entries } = recognised(question, { entriesOf });
  return isClear && entries.length > 0;
}

/**
 * True if the follower's own objects have the grant that the script is for. A config is read after the script: its
 * install goes on even if the grant was withdrawn meanwhile, as at the writer.
 */
function isGranted(question: DeskAsk, entry: LedgerEntry): boolean {
  return question.purpose === "config" || isStillGranted(question, entry, undefined);
}
