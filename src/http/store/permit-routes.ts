/**
 * `POST /davit/v1/permit`, `/davit/v1/report` and `/davit/v1/history`, on the store's listener: what followers ask and
 * report for their machines. `model/permits/permit-wire.ts` and `model/history-batch.ts` have the bodies. The guard is
 * that of following: a client that may read every config may ask for a permit. The answer comes from this davit's own
 * objects, so a follower cannot choose what opens.
 */

import type { Clock } from "../../lib/clock.ts";
import type { Answers } from "../../lib/questions.ts";
import { decodeHistoryBatch, type HistoryBatch, historyPath, maxBatchBytes } from "../../model/history-batch.ts";
import { type PermitQuestions, permitQuestions } from "../../model/permits/permit-wire.ts";
import { jsonText } from "../../render/core/rendered.ts";
import type { Store } from "../../store/store.ts";
import { type Answer, type Exchange, type Handled, readSmallBody } from "../exchange.ts";
import type { SecretsGuard } from "../guard/store-guard.ts";
import { plainAnswer, unauthorizedAnswer } from "../keys/reply.ts";

export interface PermitRoutesOptions {
  readonly store: Store;
  readonly guard: SecretsGuard;
  /** Selects by this davit's own objects, and asks the ledger. */
  readonly permits: Answers<PermitQuestions>;
  /** Adds what followers answered to the history, which also shows it in the statuses of Machines. */
  readonly handed: {
    /** @returns how many requests of the batch are done with; undefined if another member shows them. */
    take(batch: HistoryBatch, arrivedMs: number): Promise<number | undefined>;
  };
  readonly clock: Pick<Clock, "monotonicMs">;
}

// A query has at most 8 KiB, and a report fewer.
const maxBodyBytes = 64 * 1024;

/** Returns the functions that answer the POST requests of followers, by their paths. */
export function permitRoutes({
  store,
  guard,
  permits,
  handed,
  clock,
}: PermitRoutesOptions): ReadonlyMap<string, (exchange: Exchange) => Handled> {
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
  const question = <Name extends keyof PermitQuestions>(name: Name) => {
    const { path, decode, encodeAnswer } = permitQuestions[name];
    const answer = async (body: string) => {
      const asked = decode(body);
      return asked === undefined ? badQuestion : jsonAnswer(encodeAnswer(await permits[name](asked)));
    };
    return [path, guarded(answer)] as const;
  };
  const history = guarded(async (body, arrivedMs) => {
    const batch = decodeHistoryBatch(body);
    if (batch === undefined) return badQuestion;
    const taken = await handed.take(batch, arrivedMs);
    return taken === undefined ? plainAnswer(503, "Another member shows what machines ask\n") : jsonAnswer({ taken });
  }, maxBatchBytes);
  return new Map([question("permit"), question("report"), [historyPath, history]]);
}

const badQuestion = plainAnswer(400, "Bad question\n");

function jsonAnswer(value: object): Answer {
  const headers = ["Content-Type", jsonText, "Cache-Control", "no-store"];
  return { status: 200, headers, body: `${JSON.stringify(value)}\n` };
}
