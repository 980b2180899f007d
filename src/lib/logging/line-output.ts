/**
 * Writes lines to a file descriptor that may take them late or never: a pipe that nobody reads, or a full disk. Node's
 * thread pool writes them, so a running davit never waits for the reader. Lines that the reader has not taken wait in
 * bounded memory. davit drops further lines and counts them.
 *
 * pino's own stream retries its last write for ever, so a process with a full pipe or a full disk would not end.
 */

import { write, writeSync } from "node:fs";
import { backoffMs } from "../backoff.ts";
import type { Clock } from "../clock.ts";
import { codeOf } from "../errors.ts";

interface LineOutputOptions {
  readonly fileDescriptor: number;
  readonly clock: Pick<Clock, "sleep" | "monotonicMs">;
  /** Limits the memory of lines that wait, in bytes. */
  readonly maxWaitingBytes: number;
  /** Called with the number of dropped lines, when no line waits any more. */
  readonly onDropped: (count: number) => void;
}

/** The waits before davit retries a full pipe. A slow reader empties it within a few milliseconds. */
const retries = { firstMs: 1, capMs: 100 };
/** The longest wait for the reader at the end of the process. */
const lastWaitMs = 500;
/** How long the thread pool gets, at the end of the process, for the write that it has begun. */
const begunWriteMs = 20;

export class LineOutput {
  readonly #options: LineOutputOptions;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  /** `inThread`: the thread pool writes the first of `#waiting`. `paused`: the pipe was full. */
  #state: "idle" | "inThread" | "paused" = "idle";

  constructor(options: LineOutputOptions) {
    this.#options = options;
  }

  /** Adds whole lines, each with its newline. Never waits. */
  write(lines: string): void {
    const bytes = Buffer.from(lines);
    if (this.#waitingBytes + bytes.length > this.#options.maxWaitingBytes) this.#dropped += countLines(lines);
    else {
      this.#waiting.push(bytes);
      this.#waitingBytes += bytes.length;
    }
    // After an error, such as a full disk, the next lines cause the next attempt. Machines must boot meanwhile.
    if (this.#state === "idle") this.#writeFirst(0);
  }

  /**
   * Writes the lines that wait, at the end of the process. It waits at most `lastWaitMs` for the reader of a pipe, and
   * not at all for a full disk. The lines that remain are lost.
   */
  flushAtExit(): void {
    const { clock, fileDescriptor } = this.#options;
    if (this.#state === "inThread") {
      pause(begunWriteMs);
      this.#waiting.shift();
    }
    const endMs = clock.monotonicMs() + lastWaitMs;
    for (let rest of this.#waiting) {
      while (rest.length > 0) {
        try {
          rest = rest.subarray(writeSync(fileDescriptor, rest));
        } catch (error) {
          if (!isFull(error) || clock.monotonicMs() >= endMs) return;
          pause(retries.firstMs);
        }
      }
    }
  }

  /** @param attempts how often the pipe was full since it last took something. */
  #writeFirst(attempts: number): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#state = "idle";
      this.#reportDropped();
      return;
    }
    this.#state = "inThread";
    write(this.#options.fileDescriptor, first, (error, written) => {
      if (error === null) {
        this.#taken(first, written);
        this.#writeFirst(0);
      } else if (isFull(error)) void this.#retry(attempts);
      else this.#state = "idle";
    });
  }

  async #retry(attempts: number): Promise<void> {
    this.#state = "paused";
    await this.#options.clock.sleep(backoffMs(attempts, retries));
    this.#writeFirst(attempts + 1);
  }

  #taken(first: Buffer, written: number): void {
    this.#waitingBytes -= written;
    if (written === first.length) this.#waiting.shift();
    else this.#waiting[0] = first.subarray(written);
  }

  #reportDropped(): void {
    const count = this.#dropped;
    this.#dropped = 0;
    if (count > 0) this.#options.onDropped(count);
  }
}

/** True for a pipe or a socket that takes nothing now: Node makes standard output non-blocking. */
function isFull(error: unknown): boolean {
  return codeOf(error) === "EAGAIN";
}

function countLines(lines: string): number {
  return lines.split("\n").length - 1;
}

/** Blocks this thread. */
function pause(durationMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
}
