/**
 * The answers with backups. Each is made while it is sent, no faster than its reader takes it. It is cut if the reader
 * takes nothing for too long, or when the listener ends. A cut answer lacks the last line of a backup, so nobody
 * mistakes it for a complete one.
 */

import type { ServerResponse } from "node:http";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Store } from "../../store/store.ts";

export interface BackupStreamsOptions {
  readonly store: Pick<Store, "backup">;
  readonly clock: Clock;
  readonly log: Log;
}

// Each keeps the old nodes that change meanwhile: while two are sent, an overwritten store takes at most three times
// its memory.
const maxBackups = 2;
/** Longer than a reader's disk stalls while it writes and syncs, which takes seconds. */
const stallLimitMs = 60_000;

export class BackupStreams {
  readonly #options: BackupStreamsOptions;
  readonly #open = new Set<ServerResponse>();

  constructor(options: BackupStreamsOptions) {
    this.#options = options;
  }

  /** How many are sent now. */
  get count(): number {
    return this.#open.size;
  }

  /** True when one more would be too many. */
  get isFull(): boolean {
    return this.#open.size >= maxBackups;
  }

  /**
   * Answers with a backup; resolves when it is sent, or cut. The head must have been written.
   * @param client its address, for the log.
   */
  async answer(response: ServerResponse, client: string): Promise<void> {
    const { clock, log } = this.#options;
    log.info({ client }, "backup begins");
    const startMs = clock.monotonicMs();
    this.#open.add(response);
    // A client that left needs no error.
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

  /** @returns how many bytes were written until the end, or until the answer was cut. */
  async #send(response: ServerResponse): Promise<number> {
    let bytes = 0;
    for await (const slice of this.#options.store.backup()) {
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
    // The events may have come before anyone listened.
    if (response.writableNeedDrain && !response.destroyed) {
      await this.#options.clock.sleep(stallLimitMs, settled.signal);
    }
    response.off("drain", settle).off("close", settle);
    if (response.writableNeedDrain) response.destroy();
  }
}
