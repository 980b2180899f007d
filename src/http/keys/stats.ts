/** `/v2/stats/*`: the store's counts since its start, and the state of its cluster. */

import type { Clock } from "../../lib/clock.ts";
import { countNames } from "../../store/command/operation-counts.ts";
import type { LogCounts, LogMembership } from "../../store/core/log-port.ts";
import type { Store } from "../../store/store.ts";
import { timeJson } from "./json.ts";
import type { MemberView } from "./members.ts";

/** When the store began to be served. */
export interface Uptime {
  readonly startedAtMs: number;
  /** How long ago that was, on the monotonic clock. */
  readonly upMs: number;
  /** How long the store has had its leader, or has been without one. */
  readonly leaderUpMs: number;
}

/** Measures from now on. The result takes `LogMembership.leaderSinceMs`. */
export function uptimeSince(clock: Clock): (leaderSinceMs: number | undefined) => Uptime {
  const startedAtMs = clock.nowMs();
  const startMs = clock.monotonicMs();
  return (leaderSinceMs = startMs) => {
    const nowMs = clock.monotonicMs();
    return { startedAtMs, upMs: nowMs - startMs, leaderUpMs: nowMs - leaderSinceMs };
  };
}

export function storeStats({ counts, watcherCount }: Store): string {
  const fields = countNames.map((name) => `"${name}":${counts.get(name) ?? 0}`);
  return `{${fields.join(",")},"watchers":${watcherCount}}`;
}

/** The append counts are batches: members write to etcd, and send each other nothing. */
export function selfStats(
  { self: { id, name }, leader }: MemberView,
  { isLeader, counts }: Pick<LogMembership, "isLeader" | "counts">,
  { startedAtMs, upMs, leaderUpMs }: Uptime,
): string {
  return JSON.stringify({
    name,
    id,
    state: isLeader ? "StateLeader" : "StateFollower",
    startTime: timeJson(startedAtMs),
    leaderInfo: {
      leader: leader?.id ?? "",
      uptime: toGoDuration(leaderUpMs),
      startTime: timeJson(startedAtMs + (upMs - leaderUpMs)),
    },
    recvAppendRequestCnt: counts.receivedBatches,
    sendAppendRequestCnt: counts.sentBatches,
  });
}

// The leader sends its followers nothing that could have a latency.
const noLatency = { current: 0, average: 0, standardDeviation: 0, minimum: 0, maximum: 0 };

/** @returns of each follower how often it reported to etcd that it runs, because the leader measures nothing else. */
export function leaderStats({ self, all }: MemberView, { reports }: LogCounts): string {
  const followers = all
    .filter(({ id }) => id !== self.id)
    .map(({ id }) => [id, { latency: noLatency, counts: { fail: 0, success: reports.get(id) ?? 0 } }] as const);
  return JSON.stringify({ leader: self.id, followers: Object.fromEntries(followers) });
}

/** Returns a duration as Go writes it: `1h2m3.5s`, `3.5s`, `12ms`. */
export function toGoDuration(durationMs: number): string {
  const ms = Math.floor(durationMs);
  if (ms === 0) return "0s";
  if (ms < 1_000) return `${ms}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor(ms / 60_000) % 60;
  const seconds = `${(ms % 60_000) / 1_000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
