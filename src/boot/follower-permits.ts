/**
 * Answers what followers and boot threads ask the ledger's writer. The writer selects by its own objects and asks the
 * ledger, as for a machine of its own. So nobody who asks can choose what opens.
 */

import type { Answers } from "../lib/questions.ts";
import { LabelError, labelsFromQuery } from "../model/labels/labels.ts";
import type { DeskAnswer, PermitDesk } from "../model/permits/permit-desk.ts";
import type { PermitQuestion, PermitQuestions, PermitReply } from "../model/permits/permit-wire.ts";
import { BootError } from "./core/boot-error.ts";
import type { BootIndex } from "./selection/boot-index.ts";

interface FollowerPermitsOptions {
  readonly index: Pick<BootIndex, "candidate" | "select">;
  readonly desk: Pick<PermitDesk, "ask" | "report">;
}

export function permitAnswers({ index, desk }: FollowerPermitsOptions): Answers<PermitQuestions> {
  return {
    permit: async (asked) => await permitOf({ index, desk }, asked),
    report: async ({ token, report, address }) => await desk.report(token, report, address),
  };
}

/** Decides a follower's question. It is late if this davit itself would refuse the machine, or give it no install. */
async function permitOf(
  { index, desk }: FollowerPermitsOptions,
  { rawQuery, purpose, mayClaim, isSealed = false, address }: PermitQuestion,
): Promise<PermitReply> {
  try {
    const labels = labelsFromQuery(rawQuery);
    const { ask } = index.candidate(labels, purpose);
    if (ask === undefined) return late;
    const answer = await desk.ask({ ...ask, mayClaim, isSealed, rawQuery, address });
    if (answer.kind === "granted") index.select(labels, { ask, answer });
    return replyOf(answer, { group: ask.group, profile: ask.profile });
  } catch (error) {
    if (error instanceof BootError || error instanceof LabelError) return late;
    throw error;
  }
}

const late: PermitReply = { kind: "late" };

function replyOf(answer: DeskAnswer, chosen: { readonly group: string; readonly profile: string }): PermitReply {
  return answer.kind === "late" ? late : { ...answer, ...chosen };
}
