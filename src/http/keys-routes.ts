/**
 * The key API of the store, `/v2/keys`, with `/version` and `/health`: a plugin for a listener of its own, where it
 * also answers what is unknown. It reads targets and bodies by the protocol's rules, not by Fastify's, and keeps no
 * state: everything is in the store, and in the answers that wait for it.
 *
 * The listener must be made with `rewriteUrl: keysRewriteUrl`, see there.
 */

import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { unreachable } from "../lib/errors.ts";
import type { StorePath } from "../store/node.ts";
import { StoreError } from "../store/refusal.ts";
import type { Store } from "../store/store.ts";
import { type BodyReader, createBodyReader } from "./keys-body.ts";
import { isSecret, refuseReserved, refuseSecret } from "./keys-guard.ts";
import { actionBody, eventBody, readBody } from "./keys-json.ts";
import { corsHeaders, indexHeaders, sendJson, sendPlain, sendRefusal } from "./keys-reply.ts";
import { type KeysMethod, type KeysRequest, keysMethods, parseKeysRequest } from "./keys-request.ts";
import { keyOf, keysPrefix, parseTarget } from "./keys-target.ts";
import { OpenWatches } from "./keys-watches.ts";

export interface KeysRoutesOptions {
  readonly store: Store;
  /** Longest value that a client may write; 1 MiB unless given. */
  readonly maxValueBytes?: number;
}

const presetMaxValueBytes = 1024 * 1024;
// The stated limit of the API; the reference has none but that of its request line.
const maxKeyBytes = 32 * 1024;

// What clients take for the version of the protocol: the last line of servers that speak it.
const versionBody = '{"etcdserver":"3.4.23","etcdcluster":"3.4.0"}';

interface Context {
  readonly store: Store;
  readonly watches: OpenWatches;
  readonly bodies: BodyReader;
  readonly maxValueBytes: number;
}

export const keysRoutes: FastifyPluginAsync<KeysRoutesOptions> = async (app, options) => {
  const { store, maxValueBytes = presetMaxValueBytes } = options;
  const context: Context = { store, maxValueBytes, watches: new OpenWatches(store), bodies: createBodyReader() };
  app.addHook("onRequest", async (request, reply) => {
    reply.headers(corsHeaders);
    context.bodies.take(request);
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (request: FastifyRequest, payload: IncomingMessage) =>
    context.bodies.read(request, payload),
  );
  app.addHook("preClose", async () => context.watches.endAll());

  const everyMethod = app.supportedMethods;
  const keys = (request: FastifyRequest, reply: FastifyReply) => answerKeys(context, request, reply);
  app.route({ method: everyMethod, url: keysPrefix, handler: keys });
  app.route({ method: everyMethod, url: `${keysPrefix}/*`, handler: keys });
  addGetOnly(app, "/version", (reply) => sendJson(reply, 200, versionBody));
  addGetOnly(app, "/health", (reply) => sendHealth(reply, store));
  app.route({ method: everyMethod, url: "*", handler: async (request, reply) => sendOutside(request, reply) });
};

/** Where the target leads: away, nowhere, or to a key. */
async function answerKeys(context: Context, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const target = parseTarget(request.originalUrl);
  if (request.method === "OPTIONS") return sendOutside(request, reply);
  if (target.kind === "malformed") return sendPlain(reply, 400, "400 Bad Request");
  if (target.kind === "redirect") return sendRedirect(request, reply, target.location);
  const path = keyOf(target.path);
  if (path === undefined) return sendOutside(request, reply);
  const method = keysMethods.find((each) => each === request.method);
  if (method === undefined) return sendNotAllowed(reply, keysMethods.join(","));
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

function addGetOnly(app: FastifyInstance, url: string, send: (reply: FastifyReply) => FastifyReply): void {
  app.route({
    method: app.supportedMethods,
    url,
    handler: async (request, reply) => {
      if (request.method === "OPTIONS") return sendOutside(request, reply);
      return request.method === "GET" ? send(reply) : sendNotAllowed(reply, "GET");
    },
  });
}

function sendHealth(reply: FastifyReply, { status }: Store): FastifyReply {
  const isHealthy = status === "writable";
  const body = isHealthy ? '{"health":"true"}' : '{"health":"false"}\n';
  return reply
    .code(isHealthy ? 200 : 503)
    .type("text/plain; charset=utf-8")
    .send(body);
}

function sendOutside(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (request.method === "OPTIONS") return reply.code(200).send();
  return sendPlain(reply, 404, "404 page not found\n");
}

function sendNotAllowed(reply: FastifyReply, allow: string): FastifyReply {
  return sendPlain(reply.header("allow", allow), 405, "Method Not Allowed\n");
}

// A link for people, on GET only, as Go's http.Redirect writes it.
function sendRedirect(request: FastifyRequest, reply: FastifyReply, location: string): FastifyReply {
  reply.code(301).header("location", location);
  if (request.method !== "GET" && request.method !== "HEAD") return reply.send();
  const link = location.replaceAll("&", "&amp;").replaceAll("'", "&#39;");
  return reply.type("text/html; charset=utf-8").send(`<a href="${link}">Moved Permanently</a>.\n\n`);
}
