/**
 * `GET /davit/v1/backup`, on the store's listener: everything in the store at one index, including the texts of
 * Secrets, in the format of `store/backup/format.ts`. The guard decides who may ask.
 */

import type { FastifyPluginAsync } from "fastify";
import { backupPath } from "../../model/backup-path.ts";
import type { Store } from "../../store/store.ts";
import { sendPlain, sendUnauthorized } from "../keys/reply.ts";
import type { BackupStreams } from "./backup-streams.ts";
import type { SecretsGuard } from "./secrets-guard.ts";

export interface BackupRoutesOptions {
  readonly store: Store;
  /** Cut when the listener closes. */
  readonly streams: BackupStreams;
  readonly guard: SecretsGuard;
}

const fullRetrySeconds = 60;

export const backupRoutes: FastifyPluginAsync<BackupRoutesOptions> = async (app, options) => {
  const { store, streams, guard } = options;
  app.addHook("preClose", async () => streams.endAll());
  app.get(backupPath, (request, reply) => {
    const refusal = guard(request.raw);
    if (refusal !== undefined) return sendUnauthorized(reply, store, refusal);
    if (streams.isFull) return sendPlain(reply.header("retry-after", fullRetrySeconds), 503, "Too many backups\n");
    reply.hijack();
    reply.raw.writeHead(200, { "content-type": "application/x-ndjson", "cache-control": "no-store" });
    return streams.answer(reply.raw, request.ip);
  });
};
