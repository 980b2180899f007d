/**
 * `POST /davit/v1/permit`, `/davit/v1/report` and `/davit/v1/sightings`, on the store's listener: what followers ask
 * and report for their machines. `model/permit-wire.ts` and `model/sighting.ts` have the bodies. The guard is that of
 * following: a client that may read every config may ask for a permit. The answer comes from this davit's own objects,
 * so a follower cannot choose what opens.
 */

import type { Clock } from "../../lib/clock.ts";
import type { PermitDesk } from "../../model/permit-desk.ts";
import { decodeClosing, decodeQuestion, type PermitQuestion, type PermitReply } from "../../model/permit-wire.ts";
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
  readonly desk: Pick<PermitDesk, "report" | "fetched">;
  /** Shows what machines asked followers. @returns how many it has taken; undefined if another member shows them. */
  readonly sighted: (sightings: readonly MachineSighting[]) => number | undefined;
  readonly clock: Pick<Clock, "nowMs">;
}

// A query has at most 8 KiB, and a report fewer.
const maxBodyBytes = 64 * 1024;
const maxSightingsBytes = maxSightings * 1024;

/** Makes the functions that answer `permitPath`, `closingPath` and `sightingsPath`. */
export function permitAnswers({ store, guard, permit, desk, sighted, clock }: PermitRoutesOptions) {
  const guarded = (answer: (body: string) => Promise<Answer>, maxBytes = maxBodyBytes) => {
    return ({ request }: Exchange): Handled => {
      const refusal = guard(request);
      if (refusal !== undefined) return unauthorizedAnswer(store, refusal);
      return readSmallBody(request, maxBytes).then(answer, () => badQuestion);
    };
  };
  return {
    permit: guarded(async (body) => {
      const question = decodeQuestion(body);
      return question === undefined ? badQuestion : jsonAnswer(await permit(question));
    }),
    closing: guarded(async (body) => {
      const closing = decodeClosing(body);
      if (closing?.kind === "report")
        return jsonAnswer({ outcome: await desk.report(closing.token, closing.report, closing.address) });
      if (closing !== undefined) desk.fetched(closing.address, closing.path);
      return closing === undefined ? badQuestion : jsonAnswer({ outcome: "taken" });
    }),
    sightings: guarded(async (body) => {
      const sightings = decodeSightings(body, clock.nowMs());
      if (sightings === undefined) return badQuestion;
      const taken = sighted(sightings);
      return taken === undefined ? plainAnswer(503, "Another member shows what machines ask\n") : jsonAnswer({ taken });
    }, maxSightingsBytes),
  };
}

const badQuestion = plainAnswer(400, "Bad question\n");

function jsonAnswer(value: object): Answer {
  const headers = ["Content-Type", jsonText, "Cache-Control", "no-store"];
  return { status: 200, headers, body: `${JSON.stringify(value)}\n` };
}
