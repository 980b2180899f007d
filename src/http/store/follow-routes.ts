/**
 * `GET /davit/v1/follow`, on the store's listener: the documents below `/davit` for a boot service in another process.
 * They include the texts of Secrets, and the guard decides who may ask. `model/follow-line.ts` describes the lines.
 */

import type { Log } from "../../lib/log.ts";
import { followerName } from "../../model/history-batch.ts";
import { StoreError } from "../../store/core/refusal.ts";
import type { Store } from "../../store/store.ts";
import { type Answer, begin, type Exchange, type Handled } from "../exchange.ts";
import type { SecretsGuard } from "../guard/store-guard.ts";
import { plainAnswer, unauthorizedAnswer } from "../keys/reply.ts";
import type { FollowRequest, FollowStreams } from "./follow-streams.ts";

interface FollowOptions {
  readonly store: Store;
  /** The streams to followers. They end when the listener closes. */
  readonly streams: FollowStreams;
  readonly log: Log;
  readonly guard: SecretsGuard;
  /**
   * True when this davit itself answers machines from its store. Before that, the store's documents can be outdated. So
   * a follower gets 503, and continues with the documents that it has.
   */
  readonly isReady: () => boolean;
}

const fullRetrySeconds = 30;
const notReadyRetrySeconds = 5;

/** Makes the function that answers `followPath`. */
export function followAnswer(options: FollowOptions): (exchange: Exchange) => Handled {
  const { store, streams, guard } = options;
  return (exchange) => {
    const refusal = guard(exchange.request);
    if (refusal !== undefined) return unauthorizedAnswer(store, refusal);
    const asked = readFollowRequest(exchange.rawQuery);
    return streams.isBehind(asked) ? answerAhead(options, exchange, asked) : answerNow(options, exchange, asked);
  };
}

/**
 * Answers a follower that has changes which the store lacks. Another member of the store may have sent them, so this
 * member catches up first: otherwise it would send an older state. If a member that has caught up still lacks them, a
 * backup was restored, and the follower gets everything.
 */
async function answerAhead(options: FollowOptions, exchange: Exchange, asked: FollowRequest) {
  try {
    await options.store.catchUp();
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return busyAnswer(notReadyRetrySeconds, "Behind\n");
  }
  return answerNow(options, exchange, asked);
}

function answerNow(options: FollowOptions, { request, response }: Exchange, asked: FollowRequest): Answer | undefined {
  const { store, streams, log, isReady } = options;
  // A store that has lost its log may be older than what another member gave to the follower, under another cluster.
  if (!isReady() || store.status === "lost") return busyAnswer(notReadyRetrySeconds, "Not ready\n");
  if (streams.isFull) return busyAnswer(fullRetrySeconds, "Too many followers\n");
  // The follower disconnected while this member caught up.
  if (response.destroyed) return undefined;
  log.info({ client: request.socket.remoteAddress, after: asked.after?.index }, "follower came");
  begin(response, 200, streamHeaders).flushHeaders();
  streams.answer(response, asked);
  return undefined;
}

/** Headers of an answer that is sent line by line. */
export const streamHeaders = ["Content-Type", "application/x-ndjson", "Cache-Control", "no-store"];

/** Answers 503 with the time after which the client may retry. */
export function busyAnswer(retryAfterSeconds: number, text: string): Answer {
  return plainAnswer(503, text, ["Retry-After", String(retryAfterSeconds)]);
}

/** Reads what a follower has. Unreadable parameters count as absent, and the follower then gets everything. */
function readFollowRequest(rawQuery: string): FollowRequest {
  const query = new URLSearchParams(rawQuery);
  const after = query.get("after") ?? "";
  const run = query.get("run") ?? undefined;
  const name = query.get("name") ?? "";
  return {
    cluster: query.get("cluster") ?? "",
    after: /^\d{1,15}$/.test(after) ? { index: Number(after), run } : undefined,
    name: followerName.test(name) ? name : undefined,
  };
}
