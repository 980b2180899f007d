/**
 * The store's key API, `/v2/keys`, and the other endpoints: a plugin for a listener of its own, where it also
 * answers unknown paths. It reads targets and bodies by the protocol's rules, not by Fastify's. It keeps no state: the
 * store and the waiting answers have everything.
 *
 * The listener must use `rewriteUrl: keysRewriteUrl`, see there.
 */

import { type IncomingMessage, METHODS } from "node:http";
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "../../lib/clock.ts";
import { unreachable } from "../../lib/errors.ts";
import type { StorePath } from "../../store/core/node.ts";
import { StoreError } from "../../store/core/refusal.ts";
import type { Store } from "../../store/store.ts";
import { Clients } from "../client-shares.ts";
import { UnsentAnswers } from "../unsent-answers.ts";
import { type KeyAnswers, refuseLongKey } from "./answers.ts";
import { type BodyReader, createBodyReader } from "./body.ts";
import { type EndpointContext, endpointsOf, type KeysEndpoint, membersPrefix } from "./endpoints.ts";
import { isSecret } from "./guard.ts";
import { OpenListings } from "./listing.ts";
import { corsHeaders, sendAnswer, sendNotAllowed, sendOutside, sendPlain, sendRefusal } from "./reply.ts";
import { type KeysMethod, keysMethods, parseKeysRequest } from "./request.ts";
import { keyOf, keysPrefix, parseTarget } from "./target.ts";
import { OpenWatches } from "./watches.ts";

export interface KeysRoutesOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** Of the same store. */
  readonly answers: KeyAnswers;
  /** Returns the client of a request, for limits by client. */
  readonly clients?: Clients;
  /** Of the listener. */
  readonly unsent?: UnsentAnswers;
  /** The URL that the members list and `/v2/machines` give to clients; called for each answer. */
  readonly advertiseUrl: () => string;
}

const memberName = "davit";

/**
 * Limits of the listener. The protocol's keys may be 32 KiB long with each byte escaped, and so may a form with a
 * value. Long polls may be silent for ever.
 */
export const keysLimits = { maxTargetBytes: 112 * 1024, maxHeaderBytes: 128 * 1024, stallTimeoutMs: 0 } as const;

interface Context {
  readonly store: Store;
  readonly watches: OpenWatches;
  readonly listings: OpenListings;
  readonly bodies: BodyReader;
  readonly answers: KeyAnswers;
}

export const keysRoutes: FastifyPluginAsync<KeysRoutesOptions> = async (app, options) => {
  const { store, answers, clients = new Clients(), unsent = new UnsentAnswers({ clients }) } = options;
  const readsAny = ({ routeOptions }: FastifyRequest) => routeOptions.url?.startsWith(membersPrefix) === true;
  const bodies = createBodyReader(readsAny, clients);
  const listings = new OpenListings({ clock: options.clock, clients });
  const context: Context = { store, answers, watches: new OpenWatches(store, unsent), listings, bodies };
  app.addHook("onRequest", async (request, reply) => {
    reply.headers(corsHeaders);
    bodies.take(request);
    // Node decodes chunks, and would hand on any other coding's bytes unchanged.
    const coding = request.raw.headers["transfer-encoding"] ?? "chunked";
    if (coding.toLowerCase() !== "chunked") await sendPlain(reply, 501, "Unsupported transfer encoding");
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

/** Every method that Node reads: a known path answers 405 to an unknown method. */
function everyMethod(app: FastifyInstance): string[] {
  // CONNECT asks for a tunnel and never becomes a request.
  const unknown = METHODS.filter((method) => method !== "CONNECT" && !app.supportedMethods.includes(method));
  for (const method of unknown) app.addHttpMethod(method);
  return app.supportedMethods;
}

function addEndpoint(app: FastifyInstance, method: string[], { urls, methods, answer }: KeysEndpoint): void {
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    if (request.method === "OPTIONS") return sendOutside(request, reply);
    return methods.includes(request.method) ? answer(request, reply) : sendNotAllowed(reply, methods);
  };
  for (const url of urls) app.route({ method, url, handler });
}

/** Handles a target: a redirect, an unknown path, or a key. */
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
  refuseLongKey(request.path);
  const parsed = parseKeysRequest(request);
  switch (parsed.kind) {
    case "read":
      return context.listings.answer(reply, () => context.answers.read(parsed));
    case "watch":
      context.watches.answer(reply, { ...parsed, accepts: ({ node }) => !isSecret(node.path) });
      return reply;
    case "write":
      return sendAnswer(reply, await context.answers.write(parsed));
    default:
      return unreachable(parsed);
  }
}

// A link for people, on GET only, as Go's http.Redirect writes it.
function sendRedirect(request: FastifyRequest, reply: FastifyReply, location: string): FastifyReply {
  reply.code(301).header("location", location);
  if (request.method !== "GET" && request.method !== "HEAD") return reply.send();
  const link = location.replaceAll(/[&<>"']/g, (mark) => markup[mark] ?? mark);
  return reply.type("text/html; charset=utf-8").send(`<a href="${link}">Moved Permanently</a>.\n\n`);
}

// The query is copied from the target, so none of it may become a tag. The escapes are those of Go's net/http.
const markup: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;" };
