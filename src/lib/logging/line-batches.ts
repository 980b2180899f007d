/**
 * Writes lines in batches. A write for each line of an access log costs more processor time than the answer that the
 * line records. A write for a batch costs about as much as one for a line.
 */

import type { Clock } from "../clock.ts";

/** The longest wait of a line. A person does not notice it. A killed process loses only the lines of this time. */
export const batchWaitMs = 20;
/** A batch of this length does not wait. It is about 280 lines of an access log, and the capacity of a Linux pipe. */
export const batchLength = 64 * 1024;

interface LineBatchesOptions {
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

  /** Adds a line with its newline. It is written after `batchWaitMs` at the latest. Lines keep their order. */
  write(line: string): void {
    this.#lines += line;
    if (this.#lines.length >= batchLength) this.flush();
    else if (!this.#isWaiting) void this.#flushSoon();
  }

  /** Writes the lines that wait. */
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
