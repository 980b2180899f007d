/**
 * The log port. A message is a constant text in lower case, and everything that varies is data in keys. Secrets and
 * texts of templates are never data.
 */

/** Writes log lines. The name of the method is the level. */
export interface Log {
  debug(data: object, message: string): void;
  info(data: object, message: string): void;
  warn(data: object, message: string): void;
  error(data: object, message: string): void;
  /** Returns a log whose lines also have the part of davit that writes them. */
  child(data: { readonly part: string }): Log;
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silentLog };

/** The levels of a log. A log writes the lines of its level and of all levels after it. */
export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];
