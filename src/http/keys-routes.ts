/**
 * The key API of the store, `/v2/keys`, with what clients ask beside it: a plugin for a listener of its own, where it
 * also answers what is unknown. It reads targets and bodies by the protocol's rules, not by Fastify's, and keeps no
 * state: everything is in the store, and in the answers that wait for it.
 *
 * The listener must be made with `rewriteUrl: keysRewriteUrl`, see there.
 */

import { type IncomingMessage, METHODS } from "node:http";
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "../lib/clock.ts";
import { unreachable } from "../lib/errors.ts";
import type { StorePath } from "../store/node.ts";
import { StoreError } from "../store/refusal.ts";
import type { Store } from "../store/store.ts";
import { type BodyReader, createBodyReader } from "./keys-body.ts";
import { type Endpoint, type EndpointContext, endpointsOf, membersPrefix } from "./keys-endpoints.ts";
import { isSecret, refuseReserved, refuseSecret } from "./keys-guard.ts";
import { actionBody, eventBody, readBody } from "./keys-json.ts";
import {
  corsHeaders,
  indexHeaders,
  sendJson,
  sendNotAllowed,
  sendOutside,
  sendPlain,
  sendRefusal,
} from "./keys-reply.ts";
import { type KeysMethod, type KeysRequest, keysMethods, parseKeysRequest } from "./keys-request.ts";
import { keyOf, keysPrefix, parseTarget } from "./keys-target.ts";
import { OpenWatches } from "./keys-watches.ts";

export interface KeysRoutesOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** What members and machines tell clients to use; asked for each answer. */
  readonly advertiseUrl: () => string;
  /** Longest value that a client may write; 1 MiB unless given. */
  readonly maxValueBytes?: number;
}

const presetMaxValueBytes = 1024 * 1024;
// The stated limit of the API; the reference has none but that of its request line.
const maxKeyBytes = 32 * 1024;
const memberName = "davit";

interface Context {
  readonly store: Store;
  readonly watches: OpenWatches;
  readonly bodies: BodyReader;
  readonly maxValueBytes: number;
}

export const keysRoutes: FastifyPluginAsync<KeysRoutesOptions> = async (app, options) => {
  const { store, maxValueBytes = presetMaxValueBytes } = options;
  const bodies = createBodyReader(({ routeOptions }) => routeOptions.url?.startsWith(membersPrefix) === true);
  const context: Context = { store, maxValueBytes, watches: new OpenWatches(store), bodies };
  app.addHook("onRequest", async (request, reply) => {
    reply.headers(corsHeaders);
    bodies.take(request);
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (request: FastifyRequest, payload: IncomingMessage) => bodies.read(request, payload));
  app.addHook("preClose", async () => context.watches.endAll());

  const method = everyMethod(app);
  const keys = (request: FastifyRequest, reply: FastifyReply) => answerKeys(context, request, reply);
  app.route({ method, url: keysPrefix, handler: keys });
  app.route({ method, url: `${keysPrefix}/*`, handler: keys });
  for (const endpoint of endpointsOf(endpointContext(options, bodies))) addEndpoint(app, method, endpoint);
  app.route({ method, url: "*", handler: async (request, reply) => sendOutside(request, reply) });
};

function endpointContext({ store, clock, advertiseUrl }: KeysRoutesOptions, bodies: BodyReader): EndpointContext {
  const startedAtMs = clock.nowMs();
  const startMs = clock.monotonicMs();
  const id = store.identity.memberId;
  return {
    store,
    bodies,
    member: () => ({ id, name: memberName, peerURLs: [], clientURLs: [advertiseUrl()] }),
    uptime: () => ({ startedAtMs, upMs: clock.monotonicMs() - startMs }),
  };
}

/** What Node reads, Fastify's own or not: a path that is known answers 405 to a method that is not. */
function everyMethod(app: FastifyInstance): string[] {
  // CONNECT asks for a tunnel and never becomes a request.
  const unknown = METHODS.filter((method) => method !== "CONNECT" && !app.supportedMethods.includes(method));
  for (const method of unknown) app.addHttpMethod(method);
  return app.supportedMethods;
}

function addEndpoint(app: FastifyInstance, method: string[], { urls, methods, answer }: Endpoint): void {
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    if (request.method === "OPTIONS") return sendOutside(request, reply);
    return methods.includes(request.method) ? answer(request, reply) : sendNotAllowed(reply, methods);
  };
  for (const url of urls) app.route({ method, url, handler });
}

/** Where the target leads: away, nowhere, or to a key. */
async function answerKeys(context: Context, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const target = parseTarget(request.originalUrl);
  if (request.method === "OPTIONS") return sendOutside(request, reply);
  if (target.kind === "malformed") return sendPlain(reply, 400, "400 Bad Request");
  if (target.kind === "redirect") return sendRedirect(request, reply, target.location);
  const path = keyOf(target.path);
  if (path === undefined) return sendOutside(request, reply);
  const method = keysMethods.find((each) => each === request.method);
  if (method === undefined) return sendNotAllowed(reply, keysMethods);
  try {
    const form = context.bodies.formOf(request);
    return await answerKey(context, { method, path, query: target.query, ...(form !== undefined && { form }) }, reply);
  } catch (error) {
    if (error instanceof StoreError) return sendRefusal(reply, context.store, error);
    throw error;
  }
}

interface KeyRequest {
  readonly method: KeysMethod;
  readonly path: StorePath;
  readonly query: string;
  readonly form?: string;
}

async function answerKey(context: Context, request: KeyRequest, reply: FastifyReply): Promise<FastifyReply> {
  if (Buffer.byteLength(request.path) > maxKeyBytes) {
    throw new StoreError("invalidForm", `key is longer than ${maxKeyBytes} bytes`, 0);
  }
  const parsed = parseKeysRequest(request);
  switch (parsed.kind) {
    case "read":
      return sendNode(context, parsed, reply);
    case "watch":
      context.watches.answer(reply, { ...parsed, accepts: ({ node }) => !isSecret(node.path) });
      return reply;
    case "write":
      return sendWritten(context, parsed, reply);
    default:
      return unreachable(parsed);
  }
}

type ReadRequest = Extract<KeysRequest, { kind: "read" }>;
type WriteRequest = Extract<KeysRequest, { kind: "write" }>;

function sendNode({ store }: Context, { path, recursive, sorted }: ReadRequest, reply: FastifyReply): FastifyReply {
  const { indexes } = store;
  refuseSecret(path, indexes.storeIndex);
  const { node } = store.get(path, { recursive, sorted });
  reply.headers(indexHeaders(store, indexes));
  return sendJson(reply, 200, readBody(node));
}

async function sendWritten(
  { store, maxValueBytes }: Context,
  { command, hidesNode }: WriteRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  if ("value" in command && Buffer.byteLength(command.value) > maxValueBytes) {
    throw new StoreError("invalidForm", `value is longer than ${maxValueBytes} bytes`, 0);
  }
  refuseReserved(command.path, store.indexes.storeIndex);
  const { event, indexes } = await store.submit(command);
  const isNew = event.action === "create" || (event.action === "set" && event.prevNode === undefined);
  reply.headers(indexHeaders(store, indexes));
  return sendJson(reply, isNew ? 201 : 200, hidesNode ? actionBody(event) : eventBody(event));
}

// A link for people, on GET only, as Go's http.Redirect writes it.
function sendRedirect(request: FastifyRequest, reply: FastifyReply, location: string): FastifyReply {
  reply.code(301).header("location", location);
  if (request.method !== "GET" && request.method !== "HEAD") return reply.send();
  const link = location.replaceAll("&", "&amp;").replaceAll("'", "&#39;");
  return reply.type("text/html; charset=utf-8").send(`<a href="${link}">Moved Permanently</a>.\n\n`);
}
