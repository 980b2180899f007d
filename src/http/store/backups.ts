/**
 * Sends backups. Each backup is made while it is sent, no faster than its reader takes it. davit cuts the answer if the
 * reader takes nothing for a minute, or when the listener closes. A cut answer lacks the last line of a backup, so
 * nobody takes it for a complete one.
 */

import type { ServerResponse } from "node:http";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Store } from "../../store/store.ts";
import { type Answer, begin, type Exchange } from "../exchange.ts";
import type { SecretsGuard } from "../guard/store-guard.ts";
import { unauthorizedAnswer } from "../keys/reply.ts";
import { busyAnswer, streamHeaders } from "./follow-routes.ts";

export interface BackupStreamsOptions {
  readonly store: Pick<Store, "backup">;
  /** The part of another store that a backup has, too. */
  readonly beside?: Parameters<Store["backup"]>[0];
  readonly clock: Clock;
  readonly log: Log;
}

// Each backup keeps the old versions of nodes that change while it is sent. If the whole store is overwritten during
// two backups, the store takes up to three times its memory.
const maxBackups = 2;
/** Long enough for a reader whose disk stalls while it writes and syncs. Such a stall can take seconds. */
const stallLimitMs = 60_000;

export class BackupStreams {
  readonly #options: BackupStreamsOptions;
  readonly #open = new Set<ServerResponse>();

  constructor(options: BackupStreamsOptions) {
    this.#options = options;
  }

  /** How many backups are being sent. */
  get count(): number {
    return this.#open.size;
  }

  /** True when one more would be too many. */
  get isFull(): boolean {
    return this.#open.size >= maxBackups;
  }

  /**
   * Sends a backup. Resolves when it is sent or cut. The caller must have written the head.
   * @param client its address, for the log.
   */
  async answer(response: ServerResponse, client: string): Promise<void> {
    const { clock, log } = this.#options;
    log.info({ client }, "backup begins");
    const startMs = clock.monotonicMs();
    this.#open.add(response);
    // Without this listener, an error after the client has disconnected would end the process.
    response.on("error", () => undefined);
    try {
      const bytes = await this.#send(response);
      const facts = { client, bytes, seconds: (clock.monotonicMs() - startMs) / 1_000 };
      if (response.destroyed) log.warn(facts, "backup cut");
      else log.info(facts, "backup sent");
      response.end();
    } catch (error) {
      log.error({ client, err: error }, "backup failed");
      response.destroy();
    } finally {
      this.#open.delete(response);
    }
  }

  /** Cuts every answer. */
  endAll(): void {
    for (const response of this.#open) response.destroy();
  }

  /**
   * Writes the backup.
   * @returns how many bytes were written until the end, or until the answer was cut.
   */
  async #send(response: ServerResponse): Promise<number> {
    let bytes = 0;
    for await (const slice of this.#options.store.backup(this.#options.beside)) {
      if (response.destroyed) break;
      bytes += slice.length;
      if (!response.write(slice)) await this.#drained(response);
    }
    return bytes;
  }

  /** Waits until the reader has taken what was written; cuts the answer when that takes too long. */
  async #drained(response: ServerResponse): Promise<void> {
    const settled = new AbortController();
    const settle = () => settled.abort();
    response.once("drain", settle).once("close", settle);
    // Waits only if neither event has happened yet.
    if (response.writableNeedDrain && !response.destroyed) {
      await this.#options.clock.sleep(stallLimitMs, settled.signal);
    }
    response.off("drain", settle).off("close", settle);
    if (response.writableNeedDrain) response.destroy();
  }
}

interface BackupOptions {
  readonly store: Store;
  /** Sends the backups, and cuts them when the listener closes. */
  readonly streams: BackupStreams;
  readonly guard: SecretsGuard;
}

const fullRetrySeconds = 60;

/**
 * Makes the function that answers `GET /davit/v1/backup` on the store's listener. The answer has everything in the
 * store at one index, even the texts of Secrets, in the format of `store/backup/format.ts`. The function returns a
 * refusal, or undefined after it has begun to send a backup.
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
