/** Makes a log: JSON for log collectors, or lines for a person at a terminal. */

import { Writable } from "node:stream";
import { type DestinationStream, type LoggerOptions, pino } from "pino";
import pretty from "pino-pretty";
import { systemClock, toRfc3339 } from "./clock.ts";
import { LineBatches } from "./line-batches.ts";
import type { Log, LogLevel } from "./log.ts";

export interface LogOptions {
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
export interface LineLog extends Log {
  /** Writes a line without its newline, whatever the level of the log. Like a log line, it never waits in `json`. */
  readonly writeLine: (line: string) => void;
}

export function createLog({ level, format, destination, onExit }: LogOptions): LineLog {
  const options = { level, base: null, timestamp: timestamps() };
  if (format === "json") {
    return destination === undefined
      ? batchedLog(options, onExit)
      : over(pino(options, escaping(destination)), destination);
  }
  // Synchronous, so that the last line before an exit is not lost.
  const output = destination ?? standardOutput(true, onExit);
  const stream = pretty({
    sync: true,
    singleLine: true,
    ignore: "pid,hostname",
    translateTime: "SYS:HH:MM:ss.l",
    destination: asStream(escaping(output)),
  });
  return over(pino(options, stream), output);
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
 * Makes a log to standard output that never waits for the reader, because another thread writes the lines in batches. A
 * killed process loses the lines of the last `batchWaitMs`, and the lines that a slow reader has not taken. A process
 * that ends by itself, or by an error, loses no line. But its last lines can appear before a batch that the other
 * thread was writing.
 */
function batchedLog(options: LoggerOptions, onExit: LogOptions["onExit"]): LineLog {
  const output = standardOutput(false, onExit, () => batches.flush());
  // A look at each line costs more than all of a batch at once.
  const escapingOutput = escaping(output);
  const batches = new LineBatches({ write: (lines) => void escapingOutput.write(lines), clock: systemClock });
  const log = pino(options, batches);
  let dropped = 0;
  output.on("drop", (lines: string) => {
    dropped += lines.split("\n").length - 1;
  });
  output.on("drain", () => {
    if (dropped === 0) return;
    log.warn({ count: dropped }, "log lines dropped, standard output was not read in time");
    dropped = 0;
  });
  return over(log, batches);
}

/**
 * Opens standard output. Lines that it cannot take wait, and the next line tries again: machines must boot even if the
 * disk of the log is full.
 * @param flush writes what waits before `output`, when the process ends.
 */
function standardOutput(sync: boolean, onExit: LogOptions["onExit"], flush = () => {}) {
  let isFailing = false;
  // Before pino's own callback: `flushSync` retries for ever on a full disk, and pino calls it on an open stream.
  onExit?.(() => {
    flush();
    if (isFailing) output.destroy();
    else output.flushSync();
  });
  const output = pino.destination({ dest: 1, sync, maxLength: maxWaitingBytes });
  // Without a listener, an error ends the process.
  output.on("error", () => {
    isFailing = true;
  });
  output.on("write", () => {
    isFailing = false;
  });
  return output;
}
