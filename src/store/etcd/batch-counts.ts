/** Counts the batches that a member delivers. */

import type { LogCounts } from "../core/log-port.ts";
import type { EtcdProposal, OwnBatches } from "./delivery.ts";

export class BatchCounts {
  #sent = 0;
  #received = 0;

  /** The counts, with those of the election. */
  with(reports: LogCounts["reports"] = new Map()): LogCounts {
    return { sentBatches: this.#sent, receivedBatches: this.#received, reports };
  }

  /** Begins anew, once the batches that were in the log at the start are delivered. */
  reset(): void {
    this.#sent = 0;
    this.#received = 0;
  }

  /** The own batches, with a count of what is taken of them. */
  counting(own: OwnBatches): OwnBatches {
    return {
      has: (id) => own.has(id),
      take: (id) => this.#count(own.take(id)),
    };
  }

  #count(proposals: readonly EtcdProposal[] | undefined): readonly EtcdProposal[] | undefined {
    if (proposals === undefined) this.#received += 1;
    else this.#sent += 1;
    return proposals;
  }
}
