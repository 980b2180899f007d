/** Which status each object was told last: writes what differs, and counts who is ready. */

import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { ObjectName, ObjectStatus, StatusSink } from "../model/source.ts";
import { objectKey } from "./dependents.ts";

export interface StatusBookOptions {
  readonly statusSink: StatusSink;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "resources">;
}

interface Entry {
  readonly name: ObjectName;
  readonly text: string;
  readonly ready: boolean;
}

export class StatusBook {
  readonly #options: StatusBookOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: StatusBookOptions) {
    this.#options = options;
    for (const kind of ["Profile", "Group"]) {
      for (const ready of ["true", "false"]) options.metrics.resources.set({ kind, ready }, 0);
    }
  }

  /** Tells a status that differs from the last one. A sink that fails is logged, and told again with the next change. */
  async tell(name: ObjectName, status: ObjectStatus): Promise<void> {
    const key = objectKey(name);
    const text = JSON.stringify(status);
    if (this.#entries.get(key)?.text === text) return;
    this.#count(this.#entries.get(key), -1);
    const ready = status.conditions.some(({ type, status: is }) => type === "Ready" && is === "True");
    const entry = { name, text, ready };
    this.#entries.set(key, entry);
    this.#count(entry, 1);
    try {
      await this.#options.statusSink.write(name, status);
    } catch (error) {
      this.#entries.set(key, { ...entry, text: "" });
      this.#options.log.warn({ object: key, err: messageOf(error) }, "could not write a status");
    }
  }

  forget(name: ObjectName): void {
    const key = objectKey(name);
    this.#count(this.#entries.get(key), -1);
    if (this.#entries.delete(key)) this.#options.statusSink.forget(name);
  }

  #count(entry: Entry | undefined, by: 1 | -1): void {
    if (entry === undefined) return;
    this.#options.metrics.resources.inc({ kind: entry.name.kind, ready: String(entry.ready) }, by);
  }
}
