/**
 * The endpoints of a store listener besides `/v2/keys`: identity, health and counts. None of them changes the store.
 */

import type { Soon } from "../../lib/soon.ts";
import type { Store } from "../../store/store.ts";
import type { Answer, Exchange } from "../exchange.ts";
import type { Route } from "../route-table.ts";
import type { BodyReader } from "./body.ts";
import { answerMembers, type MembersAnswer, type MemberView, membersMethods } from "./members.ts";
import { clusterHeaders, jsonAnswer, notAllowedAnswer, textAnswer } from "./reply.ts";
import { leaderStats, selfStats, storeStats, type Uptime } from "./stats.ts";

export interface KeysEndpoint extends Route {
  /** The methods that the endpoint answers. Any other method gets 405, and the header `Allow` lists these methods. */
  readonly methods: readonly string[];
  /** @param rest the text that a `*` in the URL matched. */
  readonly answer: (exchange: Exchange, rest: string) => Soon<Answer>;
}

export interface EndpointContext {
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
