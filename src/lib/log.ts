/** The log port: constant lower-case messages, data in keys. Secrets and template texts are never data. */

import { type DestinationStream, pino } from "pino";
import pretty from "pino-pretty";
import { systemClock, toRfc3339 } from "./clock.ts";
import { LineBatches } from "./line-batches.ts";

/** Writes log lines; the method is the level. */
export interface Log {
  debug(data: object, message: string): void;
  info(data: object, message: string): void;
  warn(data: object, message: string): void;
  error(data: object, message: string): void;
  /** A log whose lines also carry these keys; by convention `{ part }`. */
  child(data: { readonly part: string }): Log;
}

/** How much is written: a level and everything above it. */
export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

export interface LogOptions {
  readonly level: LogLevel;
  /** `json` is one object a line for collectors; `pretty` is for a person at a terminal. */
  readonly format: "json" | "pretty";
  /** Where lines go; standard output unless a test gives its own. */
  readonly destination?: DestinationStream;
  /** Calls back when the process ends, whatever ends it but a signal that cannot be caught: the last lines go out then. */
  readonly onExit?: (callback: () => void) => void;
}

/**
 * What waits for a reader who does not keep up, at most: beyond, lines are dropped and counted. Machines boot whether or
 * not someone reads the log.
 */
const maxWaitingBytes = 16 * 1024 * 1024;

/** Makes the process's log. */
export function createLog({ level, format, destination, onExit }: LogOptions): Log {
  const options = { level, base: null, timestamp: timestamps() };
  if (format === "json") return destination === undefined ? batchedLog(options, onExit) : pino(options, destination);
  // Synchronous, so that the last line before an exit is not lost.
  const stream = pretty({
    sync: true,
    singleLine: true,
    ignore: "pid,hostname",
    translateTime: "SYS:HH:MM:ss.l",
    ...(destination && { destination }),
  });
  return pino(options, stream);
}

/** Writes the time as RFC 3339, once for all lines of a millisecond: there are dozens when machines boot in a storm. */
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

/**
 * A log to standard output that never waits for its reader: lines go out in batches, from another thread. A process that
 * is killed loses those of the last moment (`batchWaitMs`); one that ends by itself, or by an error, loses none.
 */
function batchedLog(options: { readonly level: LogLevel }, onExit: LogOptions["onExit"]): Log {
  const output = pino.destination({ dest: 1, sync: false, maxLength: maxWaitingBytes });
  const batches = new LineBatches({ write: (lines) => void output.write(lines), clock: systemClock });
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
  onExit?.(() => {
    batches.flush();
    output.flushSync();
  });
  return log;
}
