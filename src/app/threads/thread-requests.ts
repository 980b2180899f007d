/** Records, in the first thread, the requests that a boot thread has answered. */

import type { NearMisses } from "../../boot/explaining/near-misses.ts";
import type { EndedRequest, RequestedMachine, RequestSink } from "../../http/boot/access-log.ts";
import { labelsFromQuery } from "../../model/labels/labels.ts";
import type { SentMachine, ThreadEvent } from "./wire.ts";

export interface ThreadRequestsOptions {
  readonly follow: RequestSink;
  readonly nearMisses: Pick<NearMisses, "report">;
}

export class ThreadRequests {
  readonly #options: ThreadRequestsOptions;
  /** The functions to call when requests end. The key is the number of the request in its thread. */
  readonly #running = new Map<number, (ended: EndedRequest) => void>();

  constructor(options: ThreadRequestsOptions) {
    this.#options = options;
  }

  take(event: ThreadEvent): void {
    const { follow, nearMisses } = this.#options;
    switch (event.on) {
      case "begun":
        this.#running.set(event.id, follow(event.request));
        return;
      case "ended": {
        const machine = event.machine && withLabels(event.machine);
        this.#running.get(event.id)?.({ ...event.request, machine });
        this.#running.delete(event.id);
        return;
      }
      case "noMatch":
        nearMisses.report(Object.assign(new Map(event.labels), event.flaws && { flaws: event.flaws }));
        return;
    }
  }
}

/** Reads the labels from the query, as the thread did: cloning a map costs more. */
function withLabels(machine: SentMachine): RequestedMachine {
  return { ...machine, labels: labelsFromQuery(machine.rawQuery) };
}
