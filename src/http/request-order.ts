/** Requests of one connection, one after the other, as the reference answers them. */

import { type RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { nextTurn } from "../lib/slices.ts";
import { answerOf } from "./listen.ts";

// Beside these there may be as many as fit into one read of 64 KiB. Bodies that nobody reads yet are held by Node.
const maxWaiting = 100;

/**
 * A client may send its next request before it has the answer to the last one, and Node hands on each as soon as its
 * head is read. Where requests change what others read, that would let a read overtake the write before it (RFC 9112,
 * 9.3.2): here each waits until the answers before it are out, a watch among them.
 *
 * While more than 100 wait, nothing more is read from their connection. Behind a watch it is cut instead: as nothing is
 * read, nobody would learn that its client has gone.
 */
export function inOrder(listener: RequestListener): RequestListener {
  const waiting = new WeakMap<Socket, number>();
  const countOf = (socket: Socket) => waiting.get(socket) ?? 0;
  return (request, response) => {
    // Node gives the connection to one answer at a time.
    if (response.socket !== null) return listener(request, response);
    const { socket } = request;
    waiting.set(socket, countOf(socket) + 1);
    if (countOf(socket) > maxWaiting) void review(socket, countOf);
    response.once("socket", () => {
      waiting.set(socket, countOf(socket) - 1);
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
