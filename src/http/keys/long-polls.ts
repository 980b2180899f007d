/**
 * Ends long polls with their event. An event can have thousands of long polls, and each client waits only for the
 * bytes. So davit first writes these to all connections. Node's own work at the end of an answer follows in slices:
 * from the first turn without a further event, or from the 32nd turn. The next request of a connection waits for it.
 */

import type { ServerResponse } from "node:http";
import type { StoreEvent } from "../../store/core/node.ts";
import { WireResponse } from "../response-headers.ts";
import type { UnsentAnswers } from "../unsent-answers.ts";
import { watchedEventBody } from "./json.ts";

/** How many answers end in one turn. Each takes about 5 µs. */
const endsPerTurn = 64;

const maxTurnsToEnd = 32;

export class LongPolls {
  readonly #unsent: UnsentAnswers;
  /** Answers whose last byte is written, oldest first. */
  #written: ServerResponse[] = [];
  #hasWritten = false;
  #turns = 0;

  constructor(unsent: UnsentAnswers) {
    this.#unsent = unsent;
  }

  /** Sends the event that ends an answer, whose head is sent. */
  end(response: ServerResponse, event: StoreEvent): void {
    const { socket } = response;
    // HTTP/1.0 has no chunks. A connection that is gone takes nothing, and Node knows what to do.
    const takesChunks = response instanceof WireResponse && response.chunkedEncoding && socket?.writable === true;
    if (!takesChunks) {
      response.end(watchedEventBody(event));
      return;
    }
    // Node writes no chunk after the last one.
    response.chunkedEncoding = false;
    response.isWritten = true;
    socket.write(lastChunksOf(event));
    if (response.writableLength > 0) this.#unsent.follow(response);
    this.#hasWritten = true;
    if (this.#written.push(response) === 1) this.#later();
  }

  #later(): void {
    setImmediate(() => this.#nextTurn());
  }

  #nextTurn(): void {
    this.#turns += 1;
    if (!this.#hasWritten || this.#turns >= maxTurnsToEnd) {
      for (const response of this.#written.splice(0, endsPerTurn)) response.end();
      this.#turns = 0;
    }
    this.#hasWritten = false;
    if (this.#written.length > 0) this.#later();
  }
}

const lastChunks = new WeakMap<StoreEvent, Buffer>();

/** The chunk with an event, and the empty chunk that ends an answer (RFC 9112, 7.1). All long polls share them. */
function lastChunksOf(event: StoreEvent): Buffer {
  const known = lastChunks.get(event);
  if (known !== undefined) return known;
  const body = watchedEventBody(event);
  const bytes = Buffer.from(`${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`);
  lastChunks.set(event, bytes);
  return bytes;
}
