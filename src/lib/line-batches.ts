/**
 * Passes lines on in batches. A write for each line of an access log costs more processor time than the answer that the
 * line records; a batch costs about as much as one line.
 */

import type { Clock } from "./clock.ts";

/** A person who follows the log does not see the wait, and a crash loses no more than this. */
export const batchWaitMs = 20;
/** A batch of this length is passed on at once: about 280 lines of an access log, and the capacity of a Linux pipe. */
export const batchLength = 64 * 1024;

export interface LineBatchesOptions {
  readonly write: (lines: string) => void;
  readonly clock: Pick<Clock, "sleep">;
}

export class LineBatches {
  readonly #write: (lines: string) => void;
  readonly #clock: Pick<Clock, "sleep">;
  #lines = "";
  #isWaiting = false;

  constructor({ write, clock }: LineBatchesOptions) {
    this.#write = write;
    this.#clock = clock;
  }

  /** Takes a line with its end; hands it on after `batchWaitMs` at the latest, in order. */
  write(line: string): void {
    this.#lines += line;
    if (this.#lines.length >= batchLength) this.flush();
    else if (!this.#isWaiting) void this.#flushSoon();
  }

  /** Hands on what has come so far. */
  flush(): void {
    if (this.#lines === "") return;
    const lines = this.#lines;
    this.#lines = "";
    this.#write(lines);
  }

  async #flushSoon(): Promise<void> {
    this.#isWaiting = true;
    await this.#clock.sleep(batchWaitMs);
    this.#isWaiting = false;
    this.flush();
  }
}
