/**
 * `GET /davit/v1/backup`, on the store's listener: everything in the store at one index, including the texts of
 * Secrets, in the format of `store/backup/format.ts`. The guard decides who may ask.
 */

import type { Store } from "../../store/store.ts";
import { type Answer, begin, type Exchange } from "../exchange.ts";
import { unauthorizedAnswer } from "../keys/reply.ts";
import type { BackupStreams } from "./backup-streams.ts";
import { busyAnswer, streamHeaders } from "./follow-routes.ts";
import type { SecretsGuard } from "./secrets-guard.ts";

export interface BackupOptions {
  readonly store: Store;
  /** The backups that are being sent. They are cut when the listener closes. */
  readonly streams: BackupStreams;
  readonly guard: SecretsGuard;
}

const fullRetrySeconds = 60;

/** Makes the function that answers `backupPath`. */
export function backupAnswer({ store, streams, guard }: BackupOptions): (exchange: Exchange) => Answer | undefined {
  return ({ request, response }) => {
    const refusal = guard(request);
    if (refusal !== undefined) return unauthorizedAnswer(store, refusal);
    if (streams.isFull) return busyAnswer(fullRetrySeconds, "Too many backups\n");
    void streams.answer(begin(response, 200, streamHeaders), request.socket.remoteAddress ?? "");
    return undefined;
  };
}
