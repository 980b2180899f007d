/** Answers the requests of one connection in order, as the reference does. */

import { type RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Shares } from "../lib/shares.ts";
import { nextTurn } from "../lib/slices.ts";
import { Clients, type Holder } from "./client-shares.ts";
import { answerOf } from "./listen.ts";

// The limit may be exceeded by the requests of one read of 64 KiB. Node holds bodies that nobody reads yet.
const maxWaiting = 100;

/** Of all connections. Each takes about 3 KiB. */
const maxWaitingInAll = 16_384;

/**
 * A client may send its next request before it has its last answer. Node passes on each request as soon as its head is
 * read. A read could then overtake the write before it (RFC 9112, 9.3.2), and a client that does not read would have
 * every answer made and kept. So each request waits until the earlier answers are out, a watch included.
 *
 * While more than 100 wait, nothing more is read from their connection. If they wait for a watch, the connection is cut
 * instead: without reading, davit would not notice that its client has gone. It is also cut when its client has more
 * waiting requests, on all its connections, than others leave free.
 * @param clients knows which client opened a connection.
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
    // Node gives the connection to one answer at a time.
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

/** Runs after the pending requests are passed on and the next answer has begun, if it can. */
async function review(socket: Socket, countOf: (socket: Socket) => number): Promise<void> {
  await nextTurn();
  if (countOf(socket) <= maxWaiting) socket.resume();
  else if (isOpenEnded(answerOf(socket))) socket.destroy();
  else socket.pause();
}

/** True for an answer that has begun and has no known end: a watch. */
function isOpenEnded(answer: object | undefined): boolean {
  return answer instanceof ServerResponse && answer.headersSent && !answer.writableEnded;
}
