/** Answers the requests of one connection one after another, as etcd does. */

import { type RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Shares } from "../lib/shares.ts";
import { nextTurn } from "../lib/slices.ts";
import { Clients, type Holder } from "./client-shares.ts";
import { answerOf } from "./listen.ts";
import { WireResponse } from "./response-headers.ts";

// The most waiting requests of one connection. One read of 64 KiB can exceed it, because davit pauses a connection only
// after the read. Bodies need no limit here: while nobody reads a body, Node stops reading its connection.
const maxWaiting = 100;

/** The most waiting requests of all connections together. Each takes about 3 KiB. */
const maxWaitingInAll = 16_384;

/**
 * Returns a listener that passes on the requests of a connection one at a time.
 *
 * A client can send its next request before it has the last answer. Node passes on each request as soon as its head is
 * read. Without this listener, a read could overtake the write before it (RFC 9112, 9.3.2). And davit would make and
 * keep every answer for a client that does not read. So each request waits until all earlier answers are sent, even a
 * watch.
 *
 * While more than 100 requests of a connection wait, davit does not read from the connection. If they wait for a watch,
 * davit cuts the connection: without reading, it would not notice that the client has gone. davit also cuts a
 * connection when its client has more waiting requests than remain free for others.
 * @param clients names the client of a connection.
 */
export function inOrder(listener: RequestListener, clients = new Clients()): RequestListener {
  const all = new Shares({ limit: maxWaitingInAll });
  const waiting = new Map<Socket, number>();
  const countOf = (socket: Socket) => waiting.get(socket) ?? 0;
  const follow = (socket: Socket, holder: Holder) => {
    waiting.set(socket, 0);
    socket.once("close", () => {
      all.release(holder, countOf(socket));
      waiting.delete(socket);
    });
  };
  return (request, response) => {
    // Node gives the socket to one response at a time. This response has it, so no earlier answer is pending.
    if (response.socket !== null) return listener(request, response);
    const { socket } = request;
    if (socket.destroyed) return;
    const holder = clients.ofConnection(socket.remoteAddress);
    if (!waiting.has(socket)) follow(socket, holder);
    if (!all.take(holder)) return void socket.destroy();
    waiting.set(socket, countOf(socket) + 1);
    if (countOf(socket) > maxWaiting) void review(socket, countOf);
    response.once("socket", () => {
      if (!waiting.has(socket)) return;
      waiting.set(socket, countOf(socket) - 1);
      all.release(holder);
      if (countOf(socket) >= maxWaiting) void review(socket, countOf);
      listener(request, response);
    });
  };
}

/**
 * Decides whether to read on from a connection, pause it or cut it. First it waits for the next turn. By then Node has
 * passed on all pending requests, and the next answer has begun if it can.
 */
async function review(socket: Socket, countOf: (socket: Socket) => number): Promise<void> {
  await nextTurn();
  if (countOf(socket) <= maxWaiting) socket.resume();
  else if (isOpenEnded(answerOf(socket))) socket.destroy();
  else socket.pause();
}

/** True for an answer that has begun and is not complete. Such an answer can be a watch, which has no known end. */
function isOpenEnded(answer: object | undefined): boolean {
  const isWritten = answer instanceof WireResponse && answer.isWritten;
  return answer instanceof ServerResponse && answer.headersSent && !answer.writableEnded && !isWritten;
}
