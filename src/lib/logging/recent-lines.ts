/**
 * Keeps the latest warnings and errors of a log in memory, for people who have only a browser. A line has what the log
 * has, shortened. Of an error it has only the name and the code, because a library's own text may quote something.
 */

import type { Clock } from "../clock.ts";
import { codeOf } from "../errors.ts";
import type { Log } from "../log.ts";

export interface RecentLine {
  /** Unix milliseconds. */
  readonly atMs: number;
  readonly level: "warn" | "error";
  /** The part of davit that wrote the line; undefined for davit as a whole. */
  readonly part: string | undefined;
  readonly message: string;
  /** The line's data: `reason=timeout waitedMs=5000`. */
  readonly data: string;
}

const maxLines = 50;
const maxValueLength = 200;
const maxDataLength = 1_000;

export class RecentLines {
  readonly #clock: Pick<Clock, "nowMs">;
  #lines: readonly RecentLine[] = [];

  constructor(clock: Pick<Clock, "nowMs">) {
    this.#clock = clock;
  }

  /** The latest line is first. */
  get latestFirst(): readonly RecentLine[] {
    return this.#lines;
  }

  /** Returns a log that also keeps its lines here, whatever the level of `log` is. */
  over(log: Log, part?: string): Log {
    return {
      debug: (data, message) => log.debug(data, message),
      info: (data, message) => log.info(data, message),
      warn: (data, message) => {
        this.#keep({ level: "warn", part, message }, data);
        log.warn(data, message);
      },
      error: (data, message) => {
        this.#keep({ level: "error", part, message }, data);
        log.error(data, message);
      },
      child: (data) => this.over(log.child(data), data.part),
    };
  }

  #keep(line: Omit<RecentLine, "atMs" | "data">, data: object): void {
    const kept = { ...line, atMs: this.#clock.nowMs(), data: dataText(data) };
    this.#lines = [kept, ...this.#lines.slice(0, maxLines - 1)];
  }
}

function dataText(data: object): string {
  const pairs = Object.entries(data).filter(([, value]) => value !== undefined);
  return brief(
    pairs.map(([name, value]) => `${name}=${brief(valueText(value), maxValueLength)}`).join(" "),
    maxDataLength,
  );
}

function valueText(value: unknown): string {
  if (value instanceof Error) return [value.name, codeOf(value)].filter((part) => part !== undefined).join(" ");
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function brief(text: string, maxLength: number): string {
  return text.length > maxLength ? `${text.slice(0, maxLength).toWellFormed()}...` : text;
}
