/**
 * The HTTP server of all three listeners. It sets limits, spells headers for GRUB, passes each request to the
 * listener's handler, and answers what the handler throws. It also answers oversized headers and unreadable requests,
 * which Node would otherwise answer itself. It trusts `X-Forwarded-For` only from configured proxies.
 */

import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  ServerResponse,
  STATUS_CODES,
} from "node:http";
import { type AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../lib/clock.ts";
import { codeOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { ConnectionLimit, type ConnectionLimitOptions } from "./connection-limit.ts";
import { type AnswerError, RequestError, type RequestRefusal } from "./errors.ts";
import { type Exchange, exchangeOf, type Handled, send, TurnAnswers, withoutToken } from "./exchange.ts";
import { answerOf, type ListenOptions, OpenConnections } from "./listen.ts";
import { inOrder } from "./request-order.ts";
import { WireResponse } from "./response-headers.ts";
import type { ServerTls } from "./server-tls.ts";
import { countedResponses, type UnsentAnswers } from "./unsent-answers.ts";

export interface ServerLimits {
  /** The longest path with its query. 8 KiB holds 256 labels of ordinary size. */
  readonly maxTargetBytes: number;
  /** The largest request line with its headers; a larger one is answered 431. */
  readonly maxHeaderBytes: number;
  /** While an answer is due, a connection without progress for this long is cut. 0 disables this, for long polls. */
  readonly stallTimeoutMs: number;
  /** How long a client may take to send a request's head. This limit stops very slow clients. */
  readonly headersTimeoutMs: number;
  /** How long a client may take to send a whole request with its body; not shorter than `headersTimeoutMs`. */
  readonly requestTimeoutMs: number;
  /** How often Node checks for requests that have exceeded `headersTimeoutMs` or `requestTimeoutMs`. */
  readonly connectionCheckMs: number;
  /** A connection is closed when no request follows an answer within this time. */
  readonly keepAliveTimeoutMs: number;
}

const defaultLimits: ServerLimits = {
  maxTargetBytes: 8 * 1024,
  maxHeaderBytes: 16 * 1024,
  // Firmware that writes a kernel to slow memory pauses for seconds, not minutes.
  stallTimeoutMs: 120_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  // With Node's default of 30 s, a request could exceed the two limits above by 30 s.
  connectionCheckMs: 2_000,
  // iPXE sends no request while it unpacks an initrd. If its connection is closed meanwhile, its next request fails.
  keepAliveTimeoutMs: 75_000,
};

export interface ServerOptions<Visit> {
  readonly log: Log;
  readonly clock: Clock;
  readonly answerError: AnswerError;
  readonly limits?: Partial<ServerLimits>;
  /** Speaks HTTPS instead of HTTP. */
  readonly tls?: ServerTls | undefined;
  /** The limits on connections; undefined: none. */
  readonly connections?:
    | Pick<ConnectionLimitOptions, "maxConnections" | "makesRoom" | "clients" | "onRefused">
    | undefined;
  /** Counts unread answers, and refuses clients with too many of them; undefined: nothing is counted. */
  readonly unsent?: UnsentAnswers | undefined;
  readonly handler: Handler<Visit>;
}

/** What a listener does with its requests. */
export interface Handler<Visit> {
  /** Returns the request in the form that everything else reads, also logs and errors. Unless given, as it was sent. */
  rewrite?(exchange: Exchange): Exchange;
  /**
   * Called for each request before `handle`, which gets the result as `visit`. `begin` must not answer. It also sees
   * requests that are then refused for their head. It does not see requests that the limits on connections or unread
   * answers refuse.
   */
  begin(exchange: Exchange): Visit;
  /** Answers, or throws an error that `answerError` can convert. Node drops a request body that nobody reads. */
  handle(exchange: Exchange, visit: Visit): Handled;
  /** True if this client would take the text of an error for the file it wants: then the connection is cut instead. */
  cutsErrors?(exchange: Exchange): boolean;
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
   * Takes no new connection, and closes idle ones. Requests in flight have 5 s to finish; then they are cut.
   * Idempotent.
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
    // While the server closes, an answer is the last one on its connection.
    if (closed !== undefined) response.shouldKeepAlive = false;
    answered(request, response);
  };
  const ordered = inOrder(listener, options.connections?.clients);
  const nodeOptions = nodeOptionsOf(limits, options.unsent);
  const server: Server = tls ? tls.createServer(nodeOptions, ordered) : createHttpServer(nodeOptions, ordered);
  server.timeout = limits.stallTimeoutMs;
  server.on("clientError", (error, socket) => {
    // Node's types name only the interface `Duplex`. This is always the socket of a connection.
    if (socket instanceof Socket) answerClientError(error, socket, clientErrors);
  });
  // davit ignores an unknown expectation, which RFC 9110, 10.1.1 permits. Without this handler, Node answers 417 with a
  // chunked body.
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  // davit is no proxy, so CONNECT gets 404. Node passes only the bare socket, and without this handler closes it
  // silently. If an earlier request still waits for its answer, the client would take the 404 for that answer. So the
  // connection is then cut.
  server.on("connect", ({ socket }) => {
    if (answerOf(socket) === undefined) refuse(socket, "notFound", clientErrors);
    else socket.destroy();
  });
  limit?.watch(server);
  const connections = new OpenConnections(server);
  return {
    node: server,
    listen: (address) => connections.listen(address, options.clock),
    close: () => {
      if (closed === undefined) {
        closed = connections.close(options.clock);
        handler.end?.();
      }
      return closed;
    },
  };
}

/** Returns the function that checks each request and passes it to the handler. */
function answering<Visit>(
  options: ServerOptions<Visit>,
  { limit, maxTargetBytes }: { readonly limit: ConnectionLimit | undefined; readonly maxTargetBytes: number },
): RequestListener {
  const { handler, unsent } = options;
  const rewrite = handler.rewrite ?? ((exchange) => exchange);
  const turn = new TurnAnswers();
  return (request, response) => {
    if (!(response instanceof WireResponse)) throw new TypeError("A server answers with its own class of response");
    const exchange = rewrite(exchangeOf(request, response));
    const fail = (thrown: unknown) => sendFailure(thrown, exchange, options);
    try {
      // A refused connection gets a 503 and nothing else. So does a client that does not read its answers.
      if (limit?.isLeaving(request.socket) === true) throw new RequestError("crowded", { connection: "close" });
      if (unsent?.refuses(request) === true) throw new RequestError("unsent", { connection: "close" });
      const visit = handler.begin(exchange);
      checkHead(request, maxTargetBytes);
      const answer = handler.handle(exchange, visit);
      if (answer instanceof Promise) answer.then((made) => made && send(response, made)).catch(fail);
      else if (answer !== undefined) turn.add(response, answer, fail);
    } catch (error) {
      fail(error);
    }
  };
}

/** @throws {RequestError} targetTooLong, or badRequest without the `Host` header that HTTP/1.1 requires. */
function checkHead({ url = "", headers, httpVersion }: IncomingMessage, maxTargetBytes: number): void {
  if (url.length > maxTargetBytes) throw new RequestError("targetTooLong");
  if (headers.host === undefined && httpVersion === "1.1") throw new RequestError("badRequest");
}

function nodeOptionsOf(limits: ServerLimits, unsent: UnsentAnswers | undefined) {
  return {
    ServerResponse: unsent === undefined ? WireResponse : countedResponses(unsent),
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headersTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: limits.connectionCheckMs,
    // `checkHead` checks this instead, because Node's own refusal has a chunked body.
    requireHostHeader: false,
  };
}

/** Answers an error, or cuts the connection: if another answer has begun, or the handler says so. */
function sendFailure<Visit>(thrown: unknown, exchange: Exchange, options: ServerOptions<Visit>): void {
  const { response, path } = exchange;
  const { status, headers, body, report } = options.answerError(thrown, path);
  if (report !== undefined) options.log.error({ path: withoutToken(path), ...report }, "request failed");
  if (response.headersSent) response.destroy();
  else if (options.handler.cutsErrors?.(exchange) === true) cut(response, status);
  else response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) }).end(body);
}

/** Cuts the connection without an answer. The status is for the access log. */
function cut(response: Exchange["response"], status: number): void {
  response.statusCode = status;
  response.destroy();
}

interface ClientErrorOptions {
  readonly log: Pick<Log, "debug">;
  readonly answerError: AnswerError;
  readonly hasTls: boolean;
}

/**
 * Answers Node's `clientError` event: unreadable bytes, or a request that arrives too slowly. The event has only the
 * socket and an error, and no response. If an earlier request still waits for its answer, that answer is sent first.
 * The connection ends.
 */
function answerClientError(error: Error, socket: Socket, options: ClientErrorOptions): void {
  const code = codeOf(error);
  if (code === "ECONNRESET" || socket.destroyed) return;
  options.log.debug({ code }, "unreadable request");
  const current = answerOf(socket);
  if (options.hasTls && !code?.startsWith("HPE_") && code !== "ERR_HTTP_REQUEST_TIMEOUT") {
    // The TLS handshake failed, so the client could not read an answer.
    socket.destroy();
  } else if (!(current instanceof ServerResponse)) {
    refuse(socket, headRefusal(code), options);
  } else if (isDue(current)) {
    // Without the pause, every further byte would cause another error.
    socket.pause();
    current.once("finish", () => socket.writable && answerClientError(error, socket, options));
  } else if (current.headersSent) {
    // Part of the current answer is sent: an error answer would land in the middle of its body.
    socket.destroy();
  } else {
    refuse(socket, bodyRefusal(code), options);
  }
}

/**
 * True if the client must still get this answer, because the answer can confirm a write. This is so if the request has
 * arrived whole, and the answer has not begun or is complete. davit cuts an answer that has begun and is not complete,
 * because it can be a watch, which has no end.
 */
function isDue({ req, headersSent, writableEnded }: ServerResponse): boolean {
  return req.complete && (!headersSent || writableEnded);
}

/** Writes a whole answer to a socket without a response object, and closes the socket. */
function refuse(
  socket: Duplex,
  refusal: RequestRefusal,
  { answerError }: Pick<ClientErrorOptions, "answerError">,
): void {
  if (socket.writable) socket.write(rawAnswer(answerError(new RequestError(refusal), "")));
  socket.destroy();
}

function headRefusal(code: string | undefined): RequestRefusal {
  if (code === "HPE_HEADER_OVERFLOW") return "headersTooLarge";
  return code === "ERR_HTTP_REQUEST_TIMEOUT" ? "timeout" : "badRequest";
}

/** The refusal of a request whose head was read, but whose body is unreadable. */
function bodyRefusal(code: string | undefined): RequestRefusal {
  if (code === "HPE_INVALID_EOF_STATE") return "bodyCut";
  return code === "ERR_HTTP_REQUEST_TIMEOUT" ? "timeout" : "badBody";
}

function rawAnswer({ status, headers, body }: ReturnType<AnswerError>): string {
  const type = headers["content-type"] ?? "text/plain";
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `Content-Type: ${type}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
    "",
    body,
  ].join("\r\n");
}
