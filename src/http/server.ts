/**
 * One HTTP server, used by all three listeners: explicit limits, header spelling for GRUB, and a single way from a
 * request to its handler and from an error to bytes. Errors that Node would answer itself (oversized headers, unreadable
 * requests) take the same way. It never trusts `X-Forwarded-*` and never redirects.
 */

import { createServer as createHttpServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { type AddressInfo, Socket } from "node:net";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { answerClientError, refuse } from "./client-errors.ts";
import { ConnectionLimit, type ConnectionLimitOptions } from "./connection-limit.ts";
import { type AnswerError, RequestError } from "./errors.ts";
import { type Exchange, exchangeOf, type Handled, send } from "./exchange.ts";
import { answerOf, type ListenOptions, listen, OpenConnections } from "./listen.ts";
import { inOrder } from "./request-order.ts";
import { WireResponse } from "./response-headers.ts";
import type { ServerTls } from "./server-tls.ts";
import { countedResponses, type UnsentAnswers } from "./unsent-answers.ts";

export interface ServerLimits {
  /** Longest path and query. 8 KiB holds 256 labels of ordinary size. */
  readonly maxTargetBytes: number;
  /** Largest request line and header block; Node answers 431 beyond. */
  readonly maxHeaderBytes: number;
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
  // Firmware that writes a kernel to slow memory pauses for seconds, not minutes.
  stallTimeoutMs: 120_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  // Node's own 30 s would make the two limits above mere hints.
  connectionCheckMs: 2_000,
  // iPXE unpacks an initrd between two requests of one connection, and treats a closed connection as an error.
  keepAliveTimeoutMs: 75_000,
};

export interface ServerOptions<Visit> {
  readonly log: Log;
  readonly clock: Clock;
  readonly answerError: AnswerError;
  readonly limits?: Partial<ServerLimits>;
  /** Speaks HTTPS instead of HTTP. */
  readonly tls?: ServerTls | undefined;
  /** Refuses connections beyond a limit. */
  readonly connections?:
    | Pick<ConnectionLimitOptions, "maxConnections" | "makesRoom" | "clients" | "onRefused">
    | undefined;
  /** Counts unread answers, and refuses clients with too many. */
  readonly unsent?: UnsentAnswers | undefined;
  readonly handler: Handler<Visit>;
}

/** What a listener does with its requests. */
export interface Handler<Visit> {
  /**
   * Called before `handle`, and also for a request that is refused for its head; it must not answer. Not called for
   * clients that have too much open.
   */
  begin(exchange: Exchange): Visit;
  /** Answers, or throws what `answerError` knows. A body that it does not read is dropped after the answer. */
  handle(exchange: Exchange, visit: Visit): Handled;
  /** Called once, when the server closes: ends long polls. */
  end?(): void;
}

export interface HttpServer {
  /** Node's own server. */
  readonly node: Server;
  /**
   * @returns the address that it listens on.
   * @throws {StartError} when it cannot listen.
   */
  listen(options: ListenOptions): Promise<AddressInfo>;
  /**
   * Takes no new connection, closes idle ones, lets requests in flight finish for 5 s, then cuts them. Idempotent.
   */
  close(): Promise<void>;
}

/** Makes a server that does not listen yet. */
export function createServer<Visit>(options: ServerOptions<Visit>): HttpServer {
  const limits = { ...defaultLimits, ...options.limits };
  const { tls, handler } = options;
  const clientErrors = { ...options, hasTls: tls !== undefined };
  const limit = options.connections && new ConnectionLimit({ ...options, ...options.connections });
  let closed: Promise<void> | undefined;
  const answered = answering(options, { limit, maxTargetBytes: limits.maxTargetBytes });
  const listener: RequestListener = (request, response) => {
    // The last answer ends its connection.
    if (closed !== undefined) response.shouldKeepAlive = false;
    answered(request, response);
  };
  const ordered = inOrder(listener, options.connections?.clients);
  const nodeOptions = nodeOptionsOf(limits, options.unsent);
  const server: Server = tls ? tls.createServer(nodeOptions, ordered) : createHttpServer(nodeOptions, ordered);
  server.timeout = limits.stallTimeoutMs;
  server.on("clientError", (error, socket) => {
    // Node's types name the interface; it is always the socket of a connection.
    if (socket instanceof Socket) answerClientError(error, socket, clientErrors);
  });
  // Node would answer 417 with chunks; an unknown expectation may be ignored (RFC 9110, 10.1.1).
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  // Node passes these as bare sockets, and would close them silently. davit is no proxy: it has nothing to connect to.
  // A connection that waits for another answer is cut, since its client would take this one for that.
  server.on("connect", ({ socket }) => {
    if (answerOf(socket) === undefined) refuse(socket, "notFound", clientErrors);
    else socket.destroy();
  });
  limit?.watch(server);
  const connections = new OpenConnections(server);
  return {
    node: server,
    listen: (address) => listen(server, address),
    close: () => {
      if (closed === undefined) {
        closed = connections.close(options.clock);
        handler.end?.();
      }
      return closed;
    },
  };
}

/** Answers requests, after the checks that every one of them must pass. */
function answering<Visit>(
  options: ServerOptions<Visit>,
  { limit, maxTargetBytes }: { readonly limit: ConnectionLimit | undefined; readonly maxTargetBytes: number },
): RequestListener {
  const { handler, unsent } = options;
  return (request, response) => {
    if (!(response instanceof WireResponse)) throw new TypeError("A server answers with its own class of response");
    const exchange = exchangeOf(request, response);
    const fail = (thrown: unknown) => sendFailure(thrown, exchange, options);
    try {
      // Refused connections and clients that do not read: nothing more is done for them.
      if (limit?.isLeaving(request.socket) === true) throw new RequestError("crowded", { connection: "close" });
      if (unsent?.refuses(request) === true) throw new RequestError("unsent", { connection: "close" });
      const visit = handler.begin(exchange);
      checkHead(request, maxTargetBytes);
      const answer = handler.handle(exchange, visit);
      if (answer instanceof Promise) answer.then((made) => made && send(response, made)).catch(fail);
      else if (answer !== undefined) send(response, answer);
    } catch (error) {
      fail(error);
    }
  };
}

/** @throws {RequestError} */
function checkHead({ url = "", headers, httpVersion }: IncomingMessage, maxTargetBytes: number): void {
  if (url.length > maxTargetBytes) throw new RequestError("targetTooLong");
  if (headers.host === undefined && httpVersion === "1.1") throw new RequestError("badRequest");
}

/** Options of Node's server. */
function nodeOptionsOf(limits: ServerLimits, unsent: UnsentAnswers | undefined) {
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

/** Answers what was thrown; an answer that has begun is cut. */
function sendFailure<Visit>(thrown: unknown, { response, path }: Exchange, options: ServerOptions<Visit>): void {
  const { status, headers, body, report } = options.answerError(thrown, path);
  if (report !== undefined) options.log.error({ path, ...report }, "request failed");
  if (response.headersSent) response.destroy();
  else response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) }).end(body);
}
