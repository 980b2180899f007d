/**
 * Answers Node's `clientError` event: unreadable bytes, or a request that arrives too slowly. The event has only the
 * socket and an error, and no response. If an earlier request still waits for its answer, that answer is sent first.
 */

import { ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { codeOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { type AnswerError, RequestError, type RequestRefusal } from "./errors.ts";
import { answerOf } from "./listen.ts";

export interface ClientErrorOptions {
  readonly log: Pick<Log, "debug">;
  readonly answerError: AnswerError;
  readonly hasTls: boolean;
}

/** Answers unreadable bytes if the client can still get the answer, and ends the connection. */
export function answerClientError(error: Error, socket: Socket, options: ClientErrorOptions): void {
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
export function refuse(
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
