/**
 * Keeps a machine from spending its permit on a script whose files are missing: without its kernel, the machine could
 * not install, and would boot its empty disk.
 */

import { after, type Soon } from "../../lib/soon.ts";
import type { Verdict } from "../../model/permits/permit.ts";
import type { DeskAnswer, DeskAsk, PermitDesk } from "../../model/permits/permit-desk.ts";
import type { ScriptAsset } from "../../render/boot/named-assets.ts";

/** The files that davit serves. */
export interface ServedFiles {
  /** Returns the path of the first file that davit would not send now, for people; undefined if it would send all. */
  firstMissing(assets: readonly ScriptAsset[]): Promise<string | undefined>;
}

export interface ClaimQuestion {
  readonly desk: Pick<PermitDesk, "ask" | "isRemote">;
  readonly question: DeskAsk;
  /** What this process expects the desk to answer. */
  readonly verdict: Verdict;
  /** Checks the files of the script. It is called only before a claim. @throws {BootError} if one is missing. */
  readonly assertFiles: () => Soon<unknown>;
}

/** Asks the desk for a script. Checks the files before the machine spends its permit. */
export function askWithFiles({ desk, question, verdict, assertFiles }: ClaimQuestion): Soon<DeskAnswer> {
  const claim = () => after(assertFiles(), () => desk.ask(question));
  if (!question.mayClaim) return desk.ask(question);
  if (verdict.kind === "claim") return claim();
  if (verdict.kind !== "refused" || desk.isRemote !== true) return desk.ask(question);
  // The desk may know a newer ledger, in which the permit is open. So the first question must not claim.
  return after(desk.ask({ ...question, mayClaim: false }), (answer) => {
    if (answer.kind === "late") return answer;
    if (answer.kind !== "refused") return desk.ask(question);
    return answer.why === "notClaimed" ? claim() : answer;
  });
}
