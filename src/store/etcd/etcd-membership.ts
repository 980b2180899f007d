/** What a log in etcd knows about its members: see `LogMembership`. */

import { type LogMember, type LogMembership, WalError } from "../core/log-port.ts";
import { type Delivery, noBatches } from "./delivery.ts";
import type { Election } from "./election.ts";
import type { LeaderClock } from "./leader-clock.ts";
import type { Tail } from "./tail.ts";

export interface EtcdMembershipOptions {
  readonly self: LogMember;
  readonly leaseSeconds: number;
  readonly leaderClock: LeaderClock;
  /** Undefined until the log is read. */
  readonly opened: () => { readonly delivery: Delivery; readonly election: Election; readonly tail: Tail } | undefined;
}

// etcd notices the end of a leader's lease within half a second. Then the next leader needs some transactions.
const electionSeconds = 2;
const noKeys: ReadonlySet<string> = new Set();

export function membershipOf(options: EtcdMembershipOptions): LogMembership {
  const { self, leaderClock, opened } = options;
  const election = () => opened()?.election;
  return {
    get isLeader() {
      return election()?.fence !== undefined;
    },
    get leaderId() {
      return election()?.seen.leader?.id;
    },
    get leaderSinceMs() {
      return election()?.seen.leaderSinceMs;
    },
    get counts() {
      const { sentBatches, receivedBatches } = opened()?.delivery.counts ?? noBatches;
      return { sentBatches, receivedBatches, reports: election()?.seen.reports ?? new Map<string, number>() };
    },
    get completeAtMs() {
      return opened()?.tail.completeAtMs;
    },
    electionMs: (options.leaseSeconds + electionSeconds) * 1_000,
    get members() {
      return election()?.members ?? [self];
    },
    get strangeKeys() {
      return election()?.seen.strangeKeys ?? noKeys;
    },
    now: () => leaderClock.now(),
    nowMs: () => leaderClock.now().atMs,
    get behindMs() {
      return leaderClock.behindMs;
    },
    ownMs: () => leaderClock.ownMs,
    barrier: async () => {
      const tail = opened()?.tail;
      if (tail === undefined) throw new WalError("closed", "Reading the end of the log: it is closed");
      await tail.barrier();
    },
  };
}
