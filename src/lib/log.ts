/** The log port: constant lower-case messages, data in keys. Secrets and template texts are never data. */

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
