/**
 * The server of the operations listener: Fastify finds the routes, and the server that all listeners share does the
 * rest.
 */

import { Readable } from "node:stream";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { codeOf } from "../../lib/errors.ts";
import { parseJsonObject } from "../../model/json.ts";
import { jsonText, plainText } from "../../render/core/rendered.ts";
import { RequestError, type RequestRefusal } from "../errors.ts";
import { pathEnd } from "../exchange.ts";
import { createServer, type HttpServer, type ServerOptions } from "../server.ts";

export interface OpsServer extends HttpServer {
  /** Routes are added here before `listen`. Only requests with a method of their routes reach them. */
  readonly app: FastifyInstance;
}

/** Makes a server that does not listen yet. */
export function createOpsServer(options: Omit<ServerOptions<undefined>, "handler">): OpsServer {
  const app = fastify({
    logger: false,
    return503OnClosing: false,
    // Without these two, Fastify loads ajv and more. The bundle does not have them (rolldown.config.js).
    schemaController: { compilersFactory: { buildValidator: refuseSchema, buildSerializer: refuseSchema } },
    // Leaves `request.query` empty. Routes read the raw query, because the parsed form loses repeated names and bad
    // escapes.
    routerOptions: { querystringParser: () => ({}) },
    frameworkErrors: (_error, request, reply) => answerWith(new RequestError("badRequest"), request, reply),
  });
  const answerWith = (thrown: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const path = pathOf(request);
    const { status, headers, body, report } = options.answerError(thrown, path);
    if (report !== undefined) options.log.error({ path, ...report }, "request failed");
    // A Buffer, because Fastify would add a charset to the type of a JSON text.
    reply.code(status).headers(headers).send(Buffer.from(body));
  };
  app.setErrorHandler((error, request, reply) => answerWith(toRequestError(error), request, reply));
  app.setNotFoundHandler(() => {
    throw new RequestError("notFound");
  });
  refuseOtherMethods(app);
  const server = createServer({
    ...options,
    handler: {
      begin: () => undefined,
      handle: ({ request, response }) => {
        app.routing(request, response);
        return undefined;
      },
      end: () => void app.close(),
    },
  });
  return {
    ...server,
    app,
    listen: async (address) => {
      await app.ready();
      return await server.listen(address);
    },
  };
}

/** Routes have no schemas: davit checks requests itself. */
function refuseSchema(): never {
  throw new Error("A route has a schema");
}

/**
 * Refuses every method that the path's routes do not name: with 405 if the path has a route, else with 404. The bodies
 * of refused requests are never read. Routes for POST guard themselves and limit their bodies.
 */
function refuseOtherMethods(app: FastifyInstance): void {
  const methods = new Map<string, Set<string>>();
  app.addHook("onRoute", ({ url, method }) => {
    const known = methods.get(url) ?? new Set();
    for (const each of [method].flat()) known.add(each);
    methods.set(url, known);
  });
  app.addHook("onRequest", (request, _reply, done) => {
    const known = methods.get(pathOf(request));
    const { method } = request;
    // A path with a wildcard is not known here: Fastify finds its route, or none.
    if (known?.has(method) === true || (known === undefined && (method === "GET" || method === "HEAD"))) return done();
    if (known === undefined) return done(new RequestError("notFound"));
    done(new RequestError("methodNotAllowed", { allow: [...known].toSorted().join(", ") }));
  });
}

/** The path of a request as sent, without its query. */
function pathOf({ originalUrl }: FastifyRequest): string {
  return originalUrl.slice(0, pathEnd(originalUrl));
}

/** The target after the first `?`, exactly as sent. */
export function rawQueryOf({ originalUrl }: FastifyRequest): string {
  return originalUrl.slice(pathEnd(originalUrl) + 1);
}

const refusalOfStatus: Readonly<Record<number, RequestRefusal>> = {
  400: "badRequest",
  404: "notFound",
  413: "bodyTooLarge",
  414: "targetTooLong",
  415: "unsupportedType",
};

/**
 * Converts an error of Fastify into davit's refusal for the same status. Its own message is dropped, because it quotes
 * the request.
 */
function toRequestError(thrown: unknown): unknown {
  const isFastifys = codeOf(thrown)?.startsWith("FST_ERR_") === true;
  if (!isFastifys || !(thrown instanceof Error) || !("statusCode" in thrown)) return thrown;
  const refusal = refusalOfStatus[Number(thrown.statusCode)];
  return refusal === undefined ? thrown : new RequestError(refusal);
}

/** What a route shows. */
interface ShownFacts {
  /** A stream or a text is sent as it is. */
  readonly json: () => object | Readable | string;
  /** How many blanks a level of the JSON is indented by. Without it, the JSON is one line. */
  readonly indent?: number;
  /** For a person. Absent: JSON is all there is. */
  readonly text?: () => string;
}

/** Answers in JSON, or in text if there is one that the client does not prefer JSON to. */
export function show(reply: FastifyReply, { json, indent, text }: ShownFacts): FastifyReply {
  const isText = text !== undefined && !prefersJson(reply.request.headers.accept);
  const shown = isText ? text() : json();
  const isWhole = typeof shown === "string" || shown instanceof Readable;
  const body = isWhole ? shown : `${JSON.stringify(shown, undefined, indent)}\n`;
  return (
    reply
      .headers({
        "content-type": isText ? plainText : jsonText,
        "cache-control": "no-store",
        ...(text !== undefined && { vary: "accept" }),
        // Without this header, a browser could take the text for HTML.
        "x-content-type-options": "nosniff",
      })
      // A Buffer, because Fastify would add a charset to the type of a JSON text. Only an empty body has one.
      .send(typeof body === "string" && body !== "" ? Buffer.from(body) : body)
  );
}

/**
 * True if the header names JSON, and prefers it to text. Without a preference the answer is text: `curl` accepts
 * anything, and its user is a person.
 */
export function prefersJson(accept = ""): boolean {
  const weights = new Map(accept.split(",").map(weighed));
  const json = weights.get("application/json") ?? weights.get("application/*") ?? 0;
  const text = weights.get("text/plain") ?? weights.get("text/*") ?? 0;
  const anything = weights.get("*/*") ?? 0;
  return json > 0 && json > text && json >= anything;
}

/** A media range and its weight from 0 to 1. */
function weighed(range: string): readonly [type: string, weight: number] {
  const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
  return [type, weight === undefined ? 1 : Number.parseFloat(weight) || 0];
}

/** Admits only JSON objects as bodies: a web page can send only other types without asking davit first. */
export function jsonBodies(app: FastifyInstance, maxBytes: number): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "string", bodyLimit: maxBytes }, (_request, body, done) => {
    const value = parseJsonObject(String(body));
    if (value === undefined) done(new RequestError("badBody"));
    else done(null, value);
  });
}
