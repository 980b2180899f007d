/** Shows the progress of a long command: on a terminal one line that changes, else log lines. */

import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { createLog } from "../../lib/logging/create-log.ts";
import type { Host } from "./host.ts";

// The shortest times between two updates. A log gets fewer updates, because each of them is a line.
const terminalPauseMs = 100;
const logPauseMs = 5_000;

export class Progress {
  readonly #host: Host;
  readonly #clock: Clock;
  readonly #log: Log | undefined;
  readonly #doing: string;
  #shownMs: number;
  #hasLine = false;
  #length = 0;

  /** @param doing the message of the log lines. */
  constructor(host: Host, clock: Clock, doing: string) {
    this.#host = host;
    this.#doing = doing;
    this.#clock = clock;
    this.#shownMs = clock.monotonicMs();
    if (host.outputIsTerminal) return;
    this.#log = createLog({ level: "info", format: "json", destination: { write: (line) => host.write(line) } });
  }

  /** Shows how many bytes are done, on a terminal also as a bar, unless the last update was a moment ago. */
  advance(bytes: number, totalBytes?: number): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#shownMs < (this.#log === undefined ? terminalPauseMs : logPauseMs)) return;
    this.#shownMs = nowMs;
    if (this.#log === undefined) {
      const text = totalBytes === undefined || totalBytes === 0 ? sizeText(bytes) : barText(bytes, totalBytes);
      // Blanks cover the rest of a longer line before.
      this.#host.write(`\r${text.padEnd(this.#length)}`);
      this.#length = text.length;
      this.#hasLine = true;
    } else {
      this.#log.info({ bytes, ...(totalBytes !== undefined && { totalBytes }) }, this.#doing);
    }
  }

  /** Shows the result: on a terminal `sentence`, else a log line with `data` and `message`. */
  done(sentence: string, data: object, message: string): void {
    this.endLine();
    if (this.#log === undefined) this.#host.write(`${sentence}\n`);
    else this.#log.info(data, message);
  }

  /** Ends a line that was begun. Call it before other output. */
  endLine(): void {
    if (this.#hasLine) this.#host.write("\n");
    this.#hasLine = false;
    this.#length = 0;
  }
}

const barLength = 24;

/** Such as `[######------------------]  25 %, 25.0 MiB of 100.0 MiB`. */
function barText(bytes: number, totalBytes: number): string {
  const part = Math.min(1, bytes / totalBytes);
  const bar = "#".repeat(Math.floor(part * barLength)).padEnd(barLength, "-");
  const percent = String(Math.floor(part * 100)).padStart(3);
  return `[${bar}] ${percent} %, ${sizeText(bytes)} of ${sizeText(totalBytes)}`;
}

/** A progress line that appears only on a terminal. `clear` removes it. */
export class ProgressLine {
  readonly #host: Pick<Host, "writeError" | "outputIsTerminal">;
  readonly #clock: Clock;
  #shownMs: number;
  #length = 0;

  constructor(host: Pick<Host, "writeError" | "outputIsTerminal">, clock: Clock) {
    this.#host = host;
    this.#clock = clock;
    this.#shownMs = clock.monotonicMs();
  }

  /** Rewrites the line, unless the last update was a moment ago. */
  show(text: string): void {
    const nowMs = this.#clock.monotonicMs();
    if (!this.#host.outputIsTerminal || nowMs - this.#shownMs < terminalPauseMs) return;
    this.#shownMs = nowMs;
    this.#write(text);
    this.#length = text.length;
  }

  /** Removes the line. Call it before other output. */
  clear(): void {
    if (this.#length > 0) this.#write("");
    this.#length = 0;
  }

  /** Blanks cover the rest of the previous line. */
  #write(text: string): void {
    this.#host.writeError(`\r${text.padEnd(this.#length)}${text === "" ? "\r" : ""}`);
  }
}

/** Returns a size for people, in bytes, KiB, MiB or GiB. */
export function sizeText(bytes: number): string {
  if (bytes < 10_000) return `${bytes} bytes`;
  const mebibytes = bytes / 1024 ** 2;
  if (mebibytes < 1) return `${(bytes / 1024).toFixed(1)} KiB`;
  return mebibytes < 1024 ? `${mebibytes.toFixed(1)} MiB` : `${(mebibytes / 1024).toFixed(2)} GiB`;
}
