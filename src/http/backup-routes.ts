/**
 * `GET /davit/v1/backup`, on the store's listener: everything in the store at one index, the texts of Secrets among it,
 * as `store/backup-format.ts` tells. The listener's door has looked at the credentials; off loopback the route is closed
 * where there is no door that asks for any (docs/decisions/0003-who-may-follow-a-store-and-when.md).
 */

import type { FastifyPluginAsync } from "fastify";
import { backupPath } from "../model/backup-path.ts";
import { StoreError } from "../store/refusal.ts";
import type { Store } from "../store/store.ts";
import type { BackupStreams } from "./backup-streams.ts";
import { corsHeaders, sendPlain, sendRefusal } from "./keys-reply.ts";

export interface BackupRoutesOptions {
  readonly store: Store;
  /** Cut with the listener. */
  readonly streams: BackupStreams;
  /** False where anyone could ask who reaches the listener. */
  readonly isGuarded: boolean;
}

const fullRetrySeconds = 60;

export const backupRoutes: FastifyPluginAsync<BackupRoutesOptions> = async (app, options) => {
  const { store, streams, isGuarded } = options;
  app.addHook("preClose", async () => streams.endAll());
  app.get(backupPath, (request, reply) => {
    if (!isGuarded) {
      const cause = "a backup needs --store-token-file or --store-client-ca-file";
      return sendRefusal(reply.headers(corsHeaders), store, new StoreError("forbidden", cause, 0));
    }
    if (streams.isFull) return sendPlain(reply.header("retry-after", fullRetrySeconds), 503, "Too many backups\n");
    reply.hijack();
    reply.raw.writeHead(200, { "content-type": "application/x-ndjson", "cache-control": "no-store" });
    return streams.answer(reply.raw, request.ip);
  });
};
