/**
 * The answers that wait: long polls and streams. davit sends the headers when the watch is registered, and each event
 * when it happens. A slow client pauses its watch. davit disconnects the client when the history no longer has the
 * watch's next event, or when unread answers leave no room for an event. The client then reconnects with `waitIndex`.
 * On shutdown every waiting answer ends properly without an event, and the client asks again.
 */

import type { ServerResponse } from "node:http";
import type { StoreEvent } from "../../store/core/node.ts";
import type { Store } from "../../store/store.ts";
import type { WatchHandle, WatchOptions } from "../../store/watch/watch-hub.ts";
import { begin, type Exchange } from "../exchange.ts";
import { isLarge, LargeBodies } from "../large-bodies.ts";
import { WireResponse } from "../response-headers.ts";
import type { UnsentAnswers } from "../unsent-answers.ts";
import { successHeaders } from "./answers.ts";
import { watchedEventBody } from "./json.ts";

export class OpenWatches {
  readonly #store: Store;
  readonly #unsent: UnsentAnswers;
  readonly #large: LargeBodies;
  readonly #longPolls: LongPolls;
  readonly #open = new Map<ServerResponse, WatchHandle>();
  #isEnding = false;

  constructor(store: Store, unsent: UnsentAnswers) {
    this.#store = store;
    this.#unsent = unsent;
    this.#large = new LargeBodies(unsent.shares);
    this.#longPolls = new LongPolls(unsent);
  }

  /**
   * Answers with the events of a watch.
   * @throws {StoreError} historyCleared, before anything is answered.
   */
  answer({ response }: Exchange, options: WatchOptions): void {
    if (response.destroyed) return;
    const handle = this.#store.watch(options, {
      event: (event) => this.#send(response, event, options.stream === true),
      closed: (end) => {
        if (end === "overtaken") response.destroy();
        else response.end();
      },
    });
    begin(response, 200, successHeaders(this.#store, this.#store.indexes, options.path)).flushHeaders();
    response.on("drain", () => {
      this.#unsent.settled(response);
      // The client has read everything. From now on both sides may be silent until the next event.
      response.socket?.setTimeout(0);
      handle.resume();
    });
    response.on("close", () => this.#forget(response));
    this.#open.set(response, handle);
    if (this.#isEnding) this.#end(response);
    else handle.resume();
  }

  /**
   * Sends an event.
   * @returns false if the client must read this event before the next one.
   */
  #send(response: ServerResponse, event: StoreEvent, isStream: boolean): boolean {
    const body = watchedEventBody(event);
    if (isLarge(body)) return this.#sendLarge(response, event, isStream);
    if (!isStream) {
      this.#longPolls.end(response, event);
      return true;
    }
    const isTaken = response.write(body);
    if (!isTaken) this.#unsent.follow(response);
    return isTaken;
  }

  /** Sends an event that is large. All its watchers share one copy of the body. */
  #sendLarge(response: ServerResponse, event: StoreEvent, isStream: boolean): boolean {
    const held = this.#large.hold(event, watchedEventBody(event), () => this.#unsent.holderOf(response));
    if (held === undefined) {
      response.destroy();
      return false;
    }
    response.once("close", held.release);
    const isTaken = response.write(held.bytes, () => {
      held.release();
      response.off("close", held.release);
    });
    if (!isTaken) this.#unsent.watchStall(response);
    if (!isStream) response.end();
    return isTaken;
  }

  /** Ends every answer. From now on, a new answer ends as soon as it begins. */
  endAll(): void {
    this.#isEnding = true;
    for (const response of [...this.#open.keys()]) this.#end(response);
  }

  #end(response: ServerResponse): void {
    this.#forget(response);
    response.end();
  }

  #forget(response: ServerResponse): void {
    this.#open.get(response)?.close();
    this.#open.delete(response);
  }
}

/** How many answers end in one turn. Each takes about 5 µs. */
const endsPerTurn = 64;

const maxTurnsToEnd = 32;

/**
 * Ends long polls with their event. An event can have thousands of long polls, and each client waits only for the
 * bytes. So davit first writes these to all connections. Node's own work at the end of an answer follows in slices:
 * from the first turn without a further event, or from the 32nd turn. The next request of a connection waits for it.
 */
class LongPolls {
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
