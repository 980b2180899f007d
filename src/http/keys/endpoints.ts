/**
 * The endpoints of a store listener besides `/v2/keys`: identity, health and counts. None of them changes the store.
 */

import type { Clock } from "../../lib/clock.ts";
import type { Soon } from "../../lib/soon.ts";
import { countNames } from "../../store/command/operation-counts.ts";
import type { LogCounts, LogMembership } from "../../store/core/log-port.ts";
import type { Store } from "../../store/store.ts";
import type { Answer, Exchange } from "../exchange.ts";
import type { Route } from "../route-table.ts";
import type { BodyReader } from "./body.ts";
import { timeJson } from "./json.ts";
import { answerMembers, type MembersAnswer, type MemberView, membersMethods } from "./members.ts";
import { clusterHeaders, jsonAnswer, notAllowedAnswer, textAnswer } from "./reply.ts";

export interface KeysEndpoint extends Route {
  /** The methods that the endpoint answers. Any other method gets 405, and the header `Allow` lists these methods. */
  readonly methods: readonly string[];
  /** @param rest the text that a `*` in the URL matched. */
  readonly answer: (exchange: Exchange, rest: string) => Soon<Answer>;
}

interface EndpointContext {
  readonly store: Store;
  readonly bodies: BodyReader;
  readonly members: () => MemberView;
  /** How long this davit has run, and how long the store has had its leader. */
  readonly uptime: (leaderSinceMs: number | undefined) => Uptime;
}

// Clients read the version of an etcd server here. davit follows etcd 3.4.23.
const versionBody = '{"etcdserver":"3.4.23","etcdcluster":"3.4.0"}';

export function endpointsOf({ store, bodies, members, uptime }: EndpointContext): readonly KeysEndpoint[] {
  const membersRoute: Omit<KeysEndpoint, "url"> = {
    methods: membersMethods,
    answer: async ({ request }, rest) => {
      const method = membersMethods.find((each) => each === request.method) ?? "GET";
      const contentType = request.headers["content-type"];
      const asked = { method, rest, contentType, body: await bodies.text(request) };
      return membersAnswer(answerMembers(members(), asked), clusterHeaders(store));
    },
  };
  return [
    getOnly("/version", () => jsonAnswer(200, versionBody)),
    getOnly("/health", () => healthAnswer(store)),
    getOnly("/v2/stats/store", () => jsonAnswer(200, storeStats(store))),
    getOnly("/v2/stats/self", () =>
      jsonAnswer(200, selfStats(members(), store.membership, uptime(store.membership.leaderSinceMs))),
    ),
    getOnly("/v2/stats/leader", () => leaderAnswer(members(), store)),
    // Clients ask this before they send credentials. davit has no users of the v2 protocol. The listener's door checks
    // credentials.
    getOnly("/v2/auth/enable", () => jsonAnswer(200, '{"enabled":false}\n', clusterHeaders(store))),
    {
      url: "/v2/machines",
      methods: ["GET", "HEAD"],
      answer: () => textAnswer(200, clientUrlsOf(members()).join(", ")),
    },
    { url: "/v2/members", ...membersRoute },
    { url: "/v2/members/*", ...membersRoute },
  ];
}

function getOnly(url: string, answer: () => Answer): KeysEndpoint {
  return { url, methods: ["GET"], answer };
}

function healthAnswer({ status }: Store): Answer {
  return status === "writable" ? textAnswer(200, '{"health":"true"}') : textAnswer(503, '{"health":"false"}\n');
}

/** Only the leader has statistics of its followers. */
function leaderAnswer(view: MemberView, { membership }: Store): Answer {
  if (!membership.isLeader) return jsonAnswer(403, '{"message":"not current leader"}');
  return jsonAnswer(200, leaderStats(view, membership.counts));
}

function clientUrlsOf({ all }: MemberView): readonly string[] {
  return all.flatMap(({ clientURLs }) => clientURLs).toSorted();
}

function membersAnswer(answer: MembersAnswer, headers: readonly string[]): Answer {
  if (answer.kind === "notAllowed") return notAllowedAnswer(undefined, headers);
  return jsonAnswer(answer.status, answer.body, headers);
}

/** When the store began to be served. */
interface Uptime {
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

function storeStats({ counts, watcherCount }: Store): string {
  const fields = countNames.map((name) => `"${name}":${counts.get(name) ?? 0}`);
  return `{${fields.join(",")},"watchers":${watcherCount}}`;
}

/** The append counts are batches: members write to etcd, and send each other nothing. */
function selfStats(
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
function leaderStats({ self, all }: MemberView, { reports }: LogCounts): string {
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
