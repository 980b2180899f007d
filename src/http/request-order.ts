/** Requests of one connection, one after the other, as the reference answers them. */

import { type RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Shares } from "../lib/shares.ts";
import { nextTurn } from "../lib/slices.ts";
import { Clients, type Holder } from "./client-shares.ts";
import { answerOf } from "./listen.ts";

// Beside these there may be as many as fit into one read of 64 KiB. Bodies that nobody reads yet are held by Node.
const maxWaiting = 100;

/** Of all connections. Each takes some 3 KiB. */
const maxWaitingInAll = 16_384;

/**
 * A client may send its next request before it has the answer to the last one, and Node hands on each as soon as its
 * head is read. Where requests change what others read, that would let a read overtake the write before it (RFC 9112,
 * 9.3.2), and a client that does not read would have every answer made and kept: here each waits until the answers before
 * it are out, a watch among them.
 *
 * While more than 100 wait, nothing more is read from their connection. Behind a watch it is cut instead: as nothing is
 * read, davit would not notice that its client has gone. It is cut, too, when its client has more that wait, on all its
 * connections, than others leave free.
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

/** Once what was read is handed on, and the answer that is due has begun if it can. */
async function review(socket: Socket, countOf: (socket: Socket) => number): Promise<void> {
  await nextTurn();
  if (countOf(socket) <= maxWaiting) socket.resume();
  else if (isOpenEnded(answerOf(socket))) socket.destroy();
  else socket.pause();
}

/** True for an answer that has begun and whose end is not known: a watch. */
function isOpenEnded(answer: object | undefined): boolean {
  return answer instanceof ServerResponse && answer.headersSent && !answer.writableEnded;
}
