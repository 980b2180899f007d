/**
 * Answers `GET /davit/v1/backup` on the store's listener. The answer has everything in the store at one index, even the
 * texts of Secrets, in the format of `store/backup/format.ts`. The guard of `guard/store-guard.ts` decides which
 * requests get a backup.
 */

import type { Store } from "../../store/store.ts";
import { type Answer, begin, type Exchange } from "../exchange.ts";
import type { SecretsGuard } from "../guard/store-guard.ts";
import { unauthorizedAnswer } from "../keys/reply.ts";
import type { BackupStreams } from "./backup-streams.ts";
import { busyAnswer, streamHeaders } from "./follow-routes.ts";

export interface BackupOptions {
  readonly store: Store;
  /** Sends the backups, and cuts them when the listener closes. */
  readonly streams: BackupStreams;
  readonly guard: SecretsGuard;
}

const fullRetrySeconds = 60;

/**
 * Makes the function that answers requests for `backupPath`. The function returns a refusal, or undefined after it has
 * begun to send a backup.
 */
export function backupAnswer({ store, streams, guard }: BackupOptions): (exchange: Exchange) => Answer | undefined {
  return ({ request, response }) => {
    const refusal = guard(request);
    if (refusal !== undefined) return unauthorizedAnswer(store, refusal);
    if (streams.isFull) return busyAnswer(fullRetrySeconds, "Too many backups\n");
    void streams.answer(begin(response, 200, streamHeaders), request.socket.remoteAddress ?? "");
    return undefined;
  };
}
