/**
 * Prefers the endpoint whose server leads etcd. It answers a write in about half the time of another endpoint, which
 * forwards the write and learns with the next message that it is committed.
 */

import type { Clock } from "../../../lib/clock.ts";
import type { EtcdCalls } from "./calls.ts";
import type { EtcdEndpoint, EtcdEndpoints } from "./endpoint.ts";
import { EtcdError } from "./etcd-error.ts";
import type { EtcdHeader } from "./messages.ts";

interface EtcdLeaderOptions {
  readonly endpoints: EtcdEndpoints;
  readonly calls: EtcdCalls;
  readonly clock: Clock;
  /** The limit of a question to an endpoint. */
  readonly tryMs: number;
}

// This finds a leader that failed to answer once and works again. A new leader has a new term, so davit looks at once.
const lookEveryMs = 30_000;

export class EtcdLeader {
  readonly #options: EtcdLeaderOptions;
  #term = 0;
  #lookAtMs = 0;

  constructor(options: EtcdLeaderOptions) {
    this.#options = options;
  }

  /** Call it with the header of each answer. */
  heard({ raftTerm }: EtcdHeader): void {
    const { endpoints, clock } = this.#options;
    if (endpoints.all.length === 1) return;
    const nowMs = clock.monotonicMs();
    if (raftTerm <= this.#term && nowMs < this.#lookAtMs) return;
    this.#term = Math.max(this.#term, raftTerm);
    this.#lookAtMs = nowMs + lookEveryMs;
    for (const endpoint of endpoints.all) void this.#ask(endpoint);
  }

  async #ask(endpoint: EtcdEndpoint): Promise<void> {
    const { calls, endpoints, tryMs } = this.#options;
    try {
      const { header, leader } = await calls.at(endpoint, tryMs, (call) => endpoint.maintenance.status({}, call));
      if (header !== undefined && header.memberId === leader) endpoints.prefer(endpoint);
    } catch (error) {
      // Then another endpoint stays preferred.
      if (!(error instanceof EtcdError)) throw error;
    }
  }
}
