/** Passes the status of objects to several sinks. */

import type { ObjectName, ObjectStatus, StatusSink } from "../../model/objects/source.ts";

export class StatusSinks implements StatusSink {
  readonly #sinks: readonly StatusSink[];

  constructor(sinks: readonly StatusSink[]) {
    this.#sinks = sinks;
  }

  /** Writes to all sinks, then rejects if one of them did. */
  async write(name: ObjectName, status: ObjectStatus): Promise<void> {
    const results = await Promise.allSettled(this.#sinks.map((sink) => sink.write(name, status)));
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  forget(name: ObjectName): void {
    for (const sink of this.#sinks) sink.forget(name);
  }
}
