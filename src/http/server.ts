/**
 * One HTTP server, used by all three listeners: explicit limits, header spelling for GRUB, and a single way from an
 * error to bytes. Errors that Node and Fastify would answer themselves (bad escapes, unknown paths, oversized headers,
 * unreadable requests) take the same way. It never trusts `X-Forwarded-*` and never redirects.
 */

import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import type { Clock } from "../lib/clock.ts";
import { codeOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { answerClientError, refuse } from "./client-errors.ts";
import { ConnectionLimit, type ConnectionLimitOptions } from "./connection-limit.ts";
import { type AnswerError, RequestError, type RequestRefusal } from "./errors.ts";
import { type ListenOptions, listen, OpenConnections } from "./listen.ts";
import { inOrder } from "./request-order.ts";
import { WireResponse } from "./response-headers.ts";
import type { ServerTls } from "./server-tls.ts";
import { pathEnd } from "./target.ts";
import { countedResponses, type UnsentAnswers } from "./unsent-answers.ts";

export interface ServerLimits {
  /** Longest path and query. 8 KiB holds 256 labels of ordinary size. */
  readonly maxTargetBytes: number;
  /** Largest request line and header block; Node answers 431 beyond. */
  readonly maxHeaderBytes: number;
  readonly maxBodyBytes: number;
  /** While an answer is due, a connection without progress for this long is cut; 0: never, for long polls. */
  readonly stallTimeoutMs: number;
  /** A request's head must be complete within this time, against very slow clients. */
  readonly headersTimeoutMs: number;
  /** A whole request, with its body; not shorter than the head's. */
  readonly requestTimeoutMs: number;
  /** The interval between checks for requests past those two limits. */
  readonly connectionCheckMs: number;
  /** A connection is closed when no request follows an answer for this long. */
  readonly keepAliveTimeoutMs: number;
}

const defaultLimits: ServerLimits = {
  maxTargetBytes: 8 * 1024,
  maxHeaderBytes: 16 * 1024,
  maxBodyBytes: 64 * 1024,
  // Firmware that writes a kernel to slow memory pauses for seconds, not minutes.
  stallTimeoutMs: 120_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  // Node's own 30 s would make the two limits above mere hints.
  connectionCheckMs: 2_000,
  // iPXE unpacks an initrd between two requests of one connection, and treats a closed connection as an error.
  keepAliveTimeoutMs: 75_000,
};

export interface ServerOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly answerError: AnswerError;
  /** True refuses every method but GET and HEAD: 405 on a path that has a route, else 404. Bodies are never read. */
  readonly isReadOnly: boolean;
  readonly limits?: Partial<ServerLimits>;
  /** Speaks HTTPS instead of HTTP. */
  readonly tls?: ServerTls | undefined;
  /** The path that the router sees for a request; handlers find the original in `originalUrl`. */
  readonly rewriteUrl?: (request: { readonly url?: string | undefined }) => string;
  /** Refuses connections beyond a limit. */
  readonly connections?:
    | Pick<ConnectionLimitOptions, "maxConnections" | "makesRoom" | "clients" | "onRefused">
    | undefined;
  /** Counts unread answers, and refuses clients with too many. */
  readonly unsent?: UnsentAnswers;
  /** Called first for each request that reached HTTP; it must not answer. */
  readonly observe?: (request: FastifyRequest, reply: FastifyReply) => void;
  /** Called before Fastify, while the server is not closing. */
  readonly fastPath?: FastPath;
}

/**
 * Returns true if it answered the request; Fastify then never sees it. Otherwise it has read nothing of the request.
 * `fail` answers unexpected errors.
 */
export type FastPath = (request: IncomingMessage, response: WireResponse, fail: (thrown: unknown) => void) => boolean;

export interface HttpServer {
  /** Where routes are registered, before `listen`. */
  readonly app: FastifyInstance;
  /**
   * @returns the address that it listens on.
   * @throws {StartError} when it cannot listen.
   */
  listen(options: ListenOptions): Promise<AddressInfo>;
  /**
   * Takes no new connection, closes idle ones, lets requests in flight finish for 5 s, then cuts them. Idempotent. The
   * owners of long polls end them in a `preClose` hook.
   */
  close(): Promise<void>;
}

/** Makes a server that does not listen yet. */
export function createServer(options: ServerOptions): HttpServer {
  const limits = { ...defaultLimits, ...options.limits };
  const answer = (thrown: unknown, request: FastifyRequest, reply: FastifyReply) =>
    sendError(thrown, request, reply, options);
  const http = nodeOptions(limits, options.unsent);
  const { tls } = options;
  const clientErrors = { ...options, hasTls: tls !== undefined };
  const limit = options.connections && new ConnectionLimit({ ...options, ...options.connections });
  let isClosing = false;
  const app = fastify({
    bodyLimit: limits.maxBodyBytes,
    connectionTimeout: limits.stallTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    trustProxy: false,
    // Requests in flight finish; `close` cuts what is left after its grace.
    forceCloseConnections: "idle",
    return503OnClosing: false,
    // Routes for GET take HEAD too: Node leaves out the body, and the headers are the same.
    exposeHeadRoutes: false,
    logger: false,
    // Labels and keys are read from the raw query, whose parsed form loses repeats and bad escapes: `request.query` is
    // empty, and costs nothing.
    // The length limit holds for the whole target, not for one parameter.
    routerOptions: { querystringParser: () => ({}), maxParamLength: limits.maxTargetBytes },
    ...(options.rewriteUrl && { rewriteUrl: options.rewriteUrl }),
    http,
    serverFactory: (handler) => {
      const whole = refusalFirst(
        fastPathFirst(handler, options, () => isClosing),
        limit,
        options,
      );
      const listener = inOrder(whole, options.connections?.clients);
      const server = tls ? tls.createServer(http, listener) : createHttpServer(http, listener);
      server.timeout = limits.stallTimeoutMs;
      return server;
    },
    frameworkErrors: (_error, request, reply) => {
      options.observe?.(request, reply);
      answer(new RequestError("badRequest"), request, reply);
    },
    clientErrorHandler: (error, socket) => answerClientError(error, socket, clientErrors),
  });
  // Node would answer 417 with chunks; an unknown expectation may be ignored (RFC 9110, 10.1.1).
  app.server.on("checkExpectation", (request, response) => app.server.emit("request", request, response));
  // Node passes these as bare sockets, and would close them silently. davit is no proxy: it has nothing to connect to.
  app.server.on("connect", (_request, socket) => refuse(socket, "notFound", clientErrors));
  app.setErrorHandler((error, request, reply) => answer(toRequestError(error), request, reply));
  app.setNotFoundHandler(() => {
    throw new RequestError("notFound");
  });
  addChecks(app, options, limits);
  limit?.watch(app.server);
  app.addHook("preClose", async () => {
    isClosing = true;
  });
  const connections = new OpenConnections(app.server);
  return { app, listen: (address) => listen(app, address), close: () => connections.close(app, options.clock) };
}

/** Answers 503 to refused connections when they send a request, and to clients that do not read. */
function refusalFirst(
  listener: RequestListener,
  limit: ConnectionLimit | undefined,
  options: ServerOptions,
): RequestListener {
  const { unsent } = options;
  const refusalOf = (request: IncomingMessage) => {
    if (limit?.isLeaving(request.socket) === true) return "crowded";
    return unsent?.refuses(request) === true ? "unsent" : undefined;
  };
  return (request, response) => {
    const refusal = refusalOf(request);
    if (refusal === undefined) return listener(request, response);
    answerFailure(new RequestError(refusal, { connection: "close" }), { request, response }, options);
  };
}

/** Fastify itself without a fast path, or while the server closes: Fastify's answers then end their connections. */
function fastPathFirst(fastify: RequestListener, options: ServerOptions, isClosing: () => boolean): RequestListener {
  const { fastPath } = options;
  if (fastPath === undefined) return fastify;
  return (request, response) => {
    const fail = (thrown: unknown) => answerFailure(thrown, { request, response }, options);
    const isTaken = !isClosing() && response instanceof WireResponse && fastPath(request, response, fail);
    if (!isTaken) fastify(request, response);
  };
}

/** Options of Node's server: Fastify sets no timeouts on a server that it did not make. */
function nodeOptions(limits: ServerLimits, unsent: UnsentAnswers | undefined) {
  return {
    ServerResponse: unsent === undefined ? WireResponse : countedResponses(unsent),
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headersTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: limits.connectionCheckMs,
    // davit checks it with every request instead: Node's own answer would be chunked.
    requireHostHeader: false,
  };
}

/** The path of a request as sent, without its query, and without the `http://host` that proxies' clients put first. */
export function pathOf(request: FastifyRequest): string {
  const target = request.originalUrl;
  const path = target.slice(0, pathEnd(target));
  return path.startsWith("/") ? path : path.replace(/^https?:\/\/[^/]*/i, "");
}

/** The target after the first `?`, exactly as sent: ASCII, since Node refuses anything else. */
export function rawQueryOf(request: FastifyRequest): string {
  const target = request.originalUrl;
  return target.slice(pathEnd(target) + 1);
}

/** Adds the checks that run before every route. */
function addChecks(app: FastifyInstance, { isReadOnly, observe }: ServerOptions, limits: ServerLimits): void {
  const exact = new Set<string>();
  const prefixes: string[] = [];
  const folders = new Set<string>();
  app.addHook("onRoute", ({ url }) => {
    if (url.endsWith("*")) prefixes.push(url.slice(0, -1));
    else if (url.includes(":")) folders.add(folderOf(url));
    else exact.add(url);
  });
  const hasRoute = (path: string) =>
    exact.has(path) ||
    prefixes.some((prefix) => path.startsWith(prefix)) ||
    (!path.endsWith("/") && folders.has(folderOf(path)));
  app.addHook("onRequest", (request, reply, done) => {
    observe?.(request, reply);
    const { method, headers, httpVersion } = request.raw;
    if (request.originalUrl.length > limits.maxTargetBytes) return done(new RequestError("targetTooLong"));
    if (headers.host === undefined && httpVersion === "1.1") return done(new RequestError("badRequest"));
    if (!isReadOnly || method === "GET" || method === "HEAD") return done();
    if (!hasRoute(pathOf(request))) return done(new RequestError("notFound"));
    done(new RequestError("methodNotAllowed", { allow: "GET, HEAD" }));
  });
}

/** All of a path but its last name. */
function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/") + 1);
}

function sendError(thrown: unknown, request: FastifyRequest, reply: FastifyReply, options: ServerOptions): void {
  const { status, headers, body, report } = options.answerError(thrown, pathOf(request));
  if (report !== undefined) options.log.error({ path: pathOf(request), ...report }, "request failed");
  // A Buffer, because Fastify completes the content type of JSON text.
  reply.code(status).headers(headers).send(Buffer.from(body));
}

/** As `sendError`, for requests that Fastify never saw. */
function answerFailure(
  thrown: unknown,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  options: ServerOptions,
): void {
  const { url = "" } = request;
  const path = url.slice(0, pathEnd(url));
  const { status, headers, body, report } = options.answerError(thrown, path);
  if (report !== undefined) options.log.error({ path, ...report }, "request failed");
  if (response.headersSent) response.destroy();
  else response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) }).end(body);
}

const refusalOfStatus: Readonly<Record<number, RequestRefusal>> = {
  400: "badRequest",
  404: "notFound",
  408: "timeout",
  413: "bodyTooLarge",
  414: "targetTooLong",
  415: "unsupportedType",
};

/** Fastify's own errors carry a status and quote the request: only the status is kept. */
function toRequestError(thrown: unknown): unknown {
  const isFastifys = codeOf(thrown)?.startsWith("FST_ERR_") === true;
  if (!isFastifys || !(thrown instanceof Error) || !("statusCode" in thrown)) return thrown;
  const refusal = refusalOfStatus[Number(thrown.statusCode)];
  return refusal === undefined ? thrown : new RequestError(refusal);
}
