/**
 * `POST /davit/v1/permit`, `/davit/v1/report`, `/davit/v1/sightings` and `/davit/v1/history`, on the store's listener:
 * what followers ask and report for their machines. `model/permits/permit-wire.ts`, `model/sighting.ts` and
 * `model/history-batch.ts` have the bodies. The guard is that of following: a client that may read every config may ask
 * for a permit. The answer comes from this davit's own objects, so a follower cannot choose what opens.
 */

import type { Clock } from "../../lib/clock.ts";
import { decodeHistoryBatch, type HistoryBatch, maxBatchBytes } from "../../model/history-batch.ts";
import type { PermitDesk } from "../../model/permits/permit-desk.ts";
import {
  decodeClosing,
  decodeQuestion,
  type PermitQuestion,
  type PermitReply,
} from "../../model/permits/permit-wire.ts";
import { decodeSightings, type MachineSighting, maxSightings } from "../../model/sighting.ts";
import { jsonText } from "../../render/core/rendered.ts";
import type { Store } from "../../store/store.ts";
import type { Answer, Exchange, Handled } from "../exchange.ts";
import { plainAnswer, unauthorizedAnswer } from "../keys/reply.ts";
import { readSmallBody } from "../small-body.ts";
import type { SecretsGuard } from "./secrets-guard.ts";

export interface PermitRoutesOptions {
  readonly store: Store;
  readonly guard: SecretsGuard;
  /** Selects by this davit's own objects, and asks the ledger. */
  readonly permit: (question: PermitQuestion) => Promise<PermitReply>;
  readonly desk: Pick<PermitDesk, "report">;
  /** Shows what machines asked followers. @returns how many it has taken; undefined if another member shows them. */
  readonly sighted: (sightings: readonly MachineSighting[]) => number | undefined;
  /** Adds what followers answered to the history. @returns how many requests of the batch are done with. */
  readonly handed: { take(batch: HistoryBatch, arrivedMs: number): Promise<number> };
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
}

// A query has at most 8 KiB, and a report fewer.
const maxBodyBytes = 64 * 1024;
const maxSightingsBytes = maxSightings * 1024;

/** Makes the functions that answer `permitPath`, `closingPath`, `sightingsPath` and `historyPath`. */
export function permitAnswers({ store, guard, permit, desk, sighted, handed, clock }: PermitRoutesOptions) {
  const guarded = (answer: (body: string, arrivedMs: number) => Promise<Answer>, maxBytes = maxBodyBytes) => {
    return ({ request }: Exchange): Handled => {
      const refusal = guard(request);
      if (refusal !== undefined) return unauthorizedAnswer(store, refusal);
      const arrivedMs = clock.monotonicMs();
      return readSmallBody(request, maxBytes).then(
        (body) => answer(body, arrivedMs),
        () => badQuestion,
      );
    };
  };
  return {
    permit: guarded(async (body) => {
      const question = decodeQuestion(body);
      return question === undefined ? badQuestion : jsonAnswer(await permit(question));
    }),
    closing: guarded(async (body) => {
      const closing = decodeClosing(body);
      if (closing === undefined) return badQuestion;
      return jsonAnswer({ outcome: await desk.report(closing.token, closing.report, closing.address) });
    }),
    sightings: guarded(async (body) => {
      const sightings = decodeSightings(body, clock.nowMs());
      if (sightings === undefined) return badQuestion;
      const taken = sighted(sightings);
      return taken === undefined ? plainAnswer(503, "Another member shows what machines ask\n") : jsonAnswer({ taken });
    }, maxSightingsBytes),
    history: guarded(async (body, arrivedMs) => {
      const batch = decodeHistoryBatch(body);
      return batch === undefined ? badQuestion : jsonAnswer({ taken: await handed.take(batch, arrivedMs) });
    }, maxBatchBytes),
  };
}

const badQuestion = plainAnswer(400, "Bad question\n");

function jsonAnswer(value: object): Answer {
  const headers = ["Content-Type", jsonText, "Cache-Control", "no-store"];
  return { status: 200, headers, body: `${JSON.stringify(value)}\n` };
}
