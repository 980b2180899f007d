/** Requests of one connection, one after the other, as the reference answers them. */

import type { RequestListener } from "node:http";
import type { Socket } from "node:net";

// Bodies that nobody reads yet are held by Node, up to 64 KiB each: a connection holds 6.4 MiB at most.
const maxWaiting = 100;

/**
 * A client may send its next request before it has the answer to the last one, and Node hands on each as soon as its
 * head is read. Where requests change what others read, that would let a read overtake the write before it (RFC 9112,
 * 9.3.2): here each waits until the answers before it are out, a watch among them. A connection on which more than 100
 * wait is cut.
 */
export function inOrder(listener: RequestListener): RequestListener {
  const waiting = new WeakMap<Socket, number>();
  return (request, response) => {
    // Node gives the connection to one answer at a time.
    if (response.socket !== null) return listener(request, response);
    const { socket } = request;
    const count = (waiting.get(socket) ?? 0) + 1;
    if (count > maxWaiting) return void socket.destroy();
    waiting.set(socket, count);
    response.once("socket", () => {
      waiting.set(socket, (waiting.get(socket) ?? 0) - 1);
      listener(request, response);
    });
  };
}
