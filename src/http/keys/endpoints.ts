/**
 * The endpoints of a store listener besides `/v2/keys`: identity, health and counts. Nothing here changes the
 * store.
 */

import type { FastifyReply, FastifyRequest } from "fastify";
import type { Store } from "../../store/store.ts";
import type { BodyReader } from "./body.ts";
import { answerMembers, type Member, membersMethods } from "./members.ts";
import { clusterHeaders, sendJson, sendNotAllowed } from "./reply.ts";
import { leaderStats, selfStats, storeStats, type Uptime } from "./stats.ts";
import { parseTarget } from "./target.ts";

export interface KeysEndpoint {
  readonly urls: readonly string[];
  /** Other methods are answered 405, with these as `Allow`. */
  readonly methods: readonly string[];
  readonly answer: (request: FastifyRequest, reply: FastifyReply) => FastifyReply;
}

export interface EndpointContext {
  readonly store: Store;
  readonly bodies: BodyReader;
  readonly member: () => Member;
  readonly uptime: () => Uptime;
}

export const membersPrefix = "/v2/members";

// Clients read this as the protocol's version: the last line of servers that speak it.
const versionBody = '{"etcdserver":"3.4.23","etcdcluster":"3.4.0"}';

export function endpointsOf({ store, bodies, member, uptime }: EndpointContext): readonly KeysEndpoint[] {
  const answerMember = (request: FastifyRequest, reply: FastifyReply) =>
    sendMembers(reply.headers(clusterHeaders(store)), member(), request, bodies);
  return [
    getOnly("/version", (reply) => sendJson(reply, 200, versionBody)),
    getOnly("/health", (reply) => sendHealth(reply, store)),
    getOnly("/v2/stats/store", (reply) => sendJson(reply, 200, storeStats(store))),
    getOnly("/v2/stats/self", (reply) => sendJson(reply, 200, selfStats(member(), uptime()))),
    getOnly("/v2/stats/leader", (reply) => sendJson(reply, 200, leaderStats(member()))),
    // Clients ask before they send credentials. There are no users: the listener decides who gets in.
    getOnly("/v2/auth/enable", (reply) => sendJson(reply.headers(clusterHeaders(store)), 200, '{"enabled":false}\n')),
    {
      urls: ["/v2/machines"],
      methods: ["GET", "HEAD"],
      answer: (_request, reply) => reply.type("text/plain; charset=utf-8").send(member().clientURLs.join(", ")),
    },
    { urls: [membersPrefix, `${membersPrefix}/*`], methods: membersMethods, answer: answerMember },
  ];
}

function getOnly(url: string, answer: (reply: FastifyReply) => FastifyReply): KeysEndpoint {
  return { urls: [url], methods: ["GET"], answer: (_request, reply) => answer(reply) };
}

function sendHealth(reply: FastifyReply, { status }: Store): FastifyReply {
  const isHealthy = status === "writable";
  const body = isHealthy ? '{"health":"true"}' : '{"health":"false"}\n';
  return reply
    .code(isHealthy ? 200 : 503)
    .type("text/plain; charset=utf-8")
    .send(body);
}

function sendMembers(reply: FastifyReply, member: Member, request: FastifyRequest, bodies: BodyReader): FastifyReply {
  const target = parseTarget(request.originalUrl);
  const rest = target.kind === "path" ? target.path.slice(membersPrefix.length).replace(/^\//, "") : "";
  const method = membersMethods.find((each) => each === request.method) ?? "GET";
  const contentType = bodies.contentTypeOf(request);
  const answer = answerMembers(member, { method, rest, contentType, body: bodies.textOf(request) });
  return answer.kind === "json" ? sendJson(reply, answer.status, answer.body) : sendNotAllowed(reply, undefined);
}
