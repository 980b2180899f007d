/**
 * Log lines of plain data, written as pino writes them, to the byte, for half of the processor time. A line for each
 * request of a machine is most of what davit logs, and pino's way cost as much as selection and a boot script together.
 */

import type { Log } from "./log.ts";

export interface FlatLinesOptions {
  /** Writes everything but `info` lines of plain data. */
  readonly log: Log;
  /** False: `info` is not written. */
  readonly hasInfo: boolean;
  readonly write: (line: string) => void;
  /** The member with the time, after a comma. */
  readonly timestamp: () => string;
}

// The number of `info` in pino's lines.
const infoLevel = 30;

export class FlatLines implements Log {
  readonly #options: FlatLinesOptions;
  /** The part after the time in every line. */
  readonly #bindings: string;

  constructor(options: FlatLinesOptions, bindings = "") {
    this.#options = options;
    this.#bindings = bindings;
  }

  debug(data: object, message: string): void {
    this.#options.log.debug(data, message);
  }

  info(data: object, message: string): void {
    const { hasInfo, log, timestamp, write } = this.#options;
    if (!hasInfo) return;
    const members = flatMembers(data);
    if (members === undefined) log.info(data, message);
    else write(`{"level":${infoLevel}${timestamp()}${this.#bindings}${members},"msg":${quoted(message)}}\n`);
  }

  warn(data: object, message: string): void {
    this.#options.log.warn(data, message);
  }

  error(data: object, message: string): void {
    this.#options.log.error(data, message);
  }

  child(data: { readonly part: string }): Log {
    const log = this.#options.log.child(data);
    return new FlatLines({ ...this.#options, log }, `${this.#bindings},"part":${quoted(data.part)}`);
  }
}

/**
 * The members of an object as JSON, each after a comma; undefined unless all are texts, numbers, booleans or undefined.
 */
function flatMembers(data: object): string | undefined {
  if (!isRecord(data)) return undefined;
  let text = "";
  // `Object.entries` would make pairs that are garbage at once.
  for (const key in data) {
    const value = data[key];
    if (value === undefined) continue;
    const written = flatValue(value);
    if (written === undefined) return undefined;
    text += `,${quoted(key)}:${written}`;
  }
  return text;
}

function isRecord(data: object): data is Readonly<Record<string, unknown>> {
  return !Array.isArray(data);
}

function flatValue(value: unknown): string | undefined {
  if (typeof value === "string") return quoted(value);
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "null";
  return typeof value === "boolean" ? String(value) : undefined;
}

/** Most texts need no escapes, and looking for them costs less than `JSON.stringify`. */
function quoted(text: string): string {
  return /["\\\p{Cc}\p{Cs}]/u.test(text) ? JSON.stringify(text) : `"${text}"`;
}
