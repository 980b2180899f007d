/** `/v2/stats/*`: the store's counts since its start, and the state of a cluster with one member. */

import { countNames } from "../../store/command/operation-counts.ts";
import type { Store } from "../../store/store.ts";
import { timeJson } from "./json.ts";
import type { Member } from "./members.ts";

/** When the store began to be served. */
export interface Uptime {
  readonly startedAtMs: number;
  /** How long ago that was, on the monotonic clock. */
  readonly upMs: number;
}

export function storeStats({ counts, watcherCount }: Store): string {
  const fields = countNames.map((name) => `"${name}":${counts.get(name) ?? 0}`);
  return `{${fields.join(",")},"watchers":${watcherCount}}`;
}

export function selfStats({ id, name }: Member, { startedAtMs, upMs }: Uptime): string {
  const startTime = timeJson(startedAtMs);
  const leaderInfo = { leader: id, uptime: toGoDuration(upMs), startTime };
  const counts = { recvAppendRequestCnt: 0, sendAppendRequestCnt: 0 };
  return JSON.stringify({ name, id, state: "StateLeader", startTime, leaderInfo, ...counts });
}

export function leaderStats({ id }: Member): string {
  return JSON.stringify({ leader: id, followers: {} });
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
