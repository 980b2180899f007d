/**
 * Answers malformed bytes on a connection, where Node has only the socket and an error. Earlier requests are answered
 * first.
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

/** Answers bytes that Node could not read, if a client can still get the answer, and ends the connection. */
export function answerClientError(error: Error, socket: Socket, options: ClientErrorOptions): void {
  const code = codeOf(error);
  if (code === "ECONNRESET" || socket.destroyed) return;
  options.log.debug({ code }, "unreadable request");
  const current = answerOf(socket);
  if (options.hasTls && !code?.startsWith("HPE_") && code !== "ERR_HTTP_REQUEST_TIMEOUT") {
    // After a failed handshake nobody can read an answer.
    socket.destroy();
  } else if (!(current instanceof ServerResponse)) {
    refuse(socket, headRefusal(code), options);
  } else if (isDue(current)) {
    // Every further byte would cause another error.
    socket.pause();
    current.once("finish", () => socket.writable && answerClientError(error, socket, options));
  } else if (current.headersSent) {
    // An answer has begun: another one would end up in the middle of its bytes.
    socket.destroy();
  } else {
    refuse(socket, bodyRefusal(code), options);
  }
}

/** Bytes after a whole request do not void its answer, which may be that of a write. A watch is cut. */
function isDue({ req, headersSent, writableEnded }: ServerResponse): boolean {
  return req.complete && (!headersSent || writableEnded);
}

/** Answers on a bare socket, and ends it. */
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

/** For a request whose head was read, but whose body cannot be. */
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
