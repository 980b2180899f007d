/** Makes a log: JSON for log collectors, or lines for a person at a terminal. */

import { Writable } from "node:stream";
import { type DestinationStream, pino } from "pino";
import pretty from "pino-pretty";
import { type Clock, systemClock, toRfc3339 } from "../clock.ts";
import type { Log, LogLevel } from "../log.ts";
import { LineOutput } from "./line-output.ts";

interface LogOptions {
  readonly level: LogLevel;
  /** `json` writes an object per line for log collectors; `pretty` is for a person at a terminal. */
  readonly format: "json" | "pretty";
  /** Receives the lines; by default standard output. */
  readonly destination?: DestinationStream;
  /**
   * Registers a callback that writes the last lines when the process ends. After SIGKILL, nothing calls the callback.
   */
  readonly onExit?: (callback: () => void) => void;
}

/**
 * The limit for lines that wait for a slow reader of the log. davit drops and counts further lines instead of waiting,
 * because machines must boot even if nobody reads the log.
 */
const maxWaitingBytes = 16 * 1024 * 1024;

/** A log, and a way to write whole lines beside it to the same place. */
interface LineLog extends Log {
  /** Writes a line without its newline, whatever the level of the log. Like a log line, it never waits. */
  readonly writeLine: (line: string) => void;
}

export function createLog({ level, format, destination, onExit }: LogOptions): LineLog {
  const options = { level, base: null, timestamp: timestamps() };
  const output =
    destination === undefined ? standardOutput((count) => reportDropped(log, count), onExit) : escaping(destination);
  const log = over(pino(options, format === "json" ? output : prettified(output)), output);
  return log;
}

function reportDropped(log: Log, count: number): void {
  log.warn({ count }, "log lines dropped, standard output was not read in time");
}

function prettified(output: DestinationStream): DestinationStream {
  return pretty({
    sync: true,
    singleLine: true,
    ignore: "pid,hostname",
    translateTime: "SYS:HH:MM:ss.l",
    destination: asStream(output),
  });
}

function over(log: Log, output: DestinationStream): LineLog {
  return Object.assign(log, { writeLine: (line: string) => void output.write(`${line}\n`) });
}

/** Formats the time once for all lines of the same millisecond: there are dozens when many machines boot together. */
function timestamps(): () => string {
  let writtenMs = -1;
  let written = "";
  return () => {
    const nowMs = systemClock.nowMs();
    if (nowMs !== writtenMs) written = `,"time":"${toRfc3339(nowMs)}"`;
    writtenMs = nowMs;
    return written;
  };
}

// DEL and the C1 control characters, which terminals obey, and characters that change the writing direction or end a
// line.
const hiddenCharacters = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const allHiddenCharacters = new RegExp(hiddenCharacters, "g");

/**
 * Escapes `hiddenCharacters` as `\uXXXX`, because machines choose the values of labels, and people read logs in
 * terminals. JSON itself escapes only the other control characters.
 */
function escaping(destination: DestinationStream): DestinationStream {
  return {
    write: (line) =>
      destination.write(hiddenCharacters.test(line) ? line.replaceAll(allHiddenCharacters, escaped) : line),
  };
}

function asStream(destination: DestinationStream): Writable {
  return new Writable({
    decodeStrings: false,
    write: (line, _encoding, done) => {
      destination.write(String(line));
      done();
    },
  });
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/**
 * Opens standard output for lines of both formats. A killed process loses the lines of the last `batchWaitMs`, and the
 * lines that a slow reader has not taken. A process that ends by itself, or by an error, waits up to half a second for
 * the reader, and loses only the lines that remain.
 */
function standardOutput(onDropped: (count: number) => void, onExit: LogOptions["onExit"]): DestinationStream {
  const output = new LineOutput({ fileDescriptor: 1, clock: systemClock, maxWaitingBytes, onDropped });
  // Checking a whole batch costs less than checking each of its lines.
  const escapingOutput = escaping(output);
  const batches = new LineBatches({ write: (lines) => void escapingOutput.write(lines), clock: systemClock });
  onExit?.(() => {
    batches.flush();
    output.flushAtExit();
  });
  return batches;
}

/** The longest wait of a line. A person does not notice it. A killed process loses only the lines of this time. */
export const batchWaitMs = 20;
/** A batch of this length does not wait. It is about 280 lines of an access log, and the capacity of a Linux pipe. */
export const batchLength = 64 * 1024;

/**
 * Writes lines in batches. A write for each line of an access log costs more processor time than the answer that the
 * line records. A write for a batch costs about as much as one for a line.
 */
export class LineBatches {
  readonly #write: (lines: string) => void;
  readonly #clock: Pick<Clock, "sleep">;
  #lines = "";
  #isWaiting = false;

  constructor({ write, clock }: { readonly write: (lines: string) => void; readonly clock: Pick<Clock, "sleep"> }) {
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
