/** The log port: constant lower-case messages, data in keys. Secrets and template texts are never data. */

import { type DestinationStream, pino } from "pino";
import pretty from "pino-pretty";

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
}

/** Makes the process's log. */
export function createLog({ level, format, destination }: LogOptions): Log {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  if (format === "json") return destination === undefined ? pino(options) : pino(options, destination);
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
