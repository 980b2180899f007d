/** Logs the API server's warnings in headers, such as a version that it will drop, each warning once. */

import type { Log } from "../../lib/log.ts";

// RFC 9111 5.5: code, agent and quoted text. The texts are the API server's own, written for people.
const warning = /^\d{3} \S+ "((?:[^"\\]|\\.){1,1000})"/;

// Warnings come from a small set; this bounds what a server that invents new ones can add.
const maxKnown = 100;

export class ApiWarnings {
  readonly #log: Log;
  readonly #known = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Takes the `Warning` header of an answer. */
  take(header: string | string[] | undefined): void {
    for (const value of [header ?? []].flat()) {
      const text = warning.exec(value)?.[1];
      if (text === undefined || this.#known.has(text) || this.#known.size >= maxKnown) continue;
      this.#known.add(text);
      this.#log.warn({ warning: text }, "the API server warns");
    }
  }
}
