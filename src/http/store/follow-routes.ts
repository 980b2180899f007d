/**
 * `GET /davit/v1/follow`, on the store's listener: the documents below `/davit` for a boot service in another process,
 * including the texts of Secrets. `model/follow-line.ts` describes the lines. The guard decides who may ask.
 */

import type { FastifyPluginAsync, FastifyReply } from "fastify";
import type { Log } from "../../lib/log.ts";
import { followPath } from "../../model/follow-line.ts";
import type { Store } from "../../store/store.ts";
import { sendPlain, sendUnauthorized } from "../keys/reply.ts";
import { rawQueryOf } from "../server.ts";
import type { FollowRequest, FollowStreams } from "./follow-streams.ts";
import type { SecretsGuard } from "./secrets-guard.ts";

export interface FollowRoutesOptions {
  readonly store: Store;
  /** Stopped with the listener. */
  readonly streams: FollowStreams;
  readonly log: Log;
  readonly guard: SecretsGuard;
  /**
   * True once this davit itself would answer machines from its store. Before that, a newly started store may hold old
   * documents; its earlier followers continue with those they have.
   */
  readonly isReady: () => boolean;
}

const fullRetrySeconds = 30;
const notReadyRetrySeconds = 5;

export const followRoutes: FastifyPluginAsync<FollowRoutesOptions> = async (app, options) => {
  const { store, streams, log, guard, isReady } = options;
  app.addHook("preClose", async () => streams.stop());
  app.get(followPath, (request, reply) => {
    const refusal = guard(request.raw);
    if (refusal !== undefined) return sendUnauthorized(reply, store, refusal);
    if (!isReady()) return sendBusy(reply, notReadyRetrySeconds, "Not ready\n");
    if (streams.isFull) return sendBusy(reply, fullRetrySeconds, "Too many followers\n");
    const asked = readFollowRequest(rawQueryOf(request));
    log.info({ client: request.ip, after: asked.after?.index }, "follower came");
    reply.hijack();
    reply.raw.writeHead(200, { "content-type": "application/x-ndjson", "cache-control": "no-store" });
    reply.raw.flushHeaders();
    streams.answer(reply.raw, asked);
  });
};

function sendBusy(reply: FastifyReply, retryAfterSeconds: number, text: string): FastifyReply {
  return sendPlain(reply.header("retry-after", String(retryAfterSeconds)), 503, text);
}

/** Unreadable parameters count as absent: the answer is then everything. */
function readFollowRequest(rawQuery: string): FollowRequest {
  const query = new URLSearchParams(rawQuery);
  const after = query.get("after") ?? "";
  const run = query.get("run") ?? undefined;
  return {
    cluster: query.get("cluster") ?? "",
    after: /^\d{1,15}$/.test(after) ? { index: Number(after), run } : undefined,
  };
}
