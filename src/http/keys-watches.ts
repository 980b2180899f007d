/**
 * The answers that wait: long polls and streams. Headers go out when the watch is registered, events when they happen.
 * A client that reads too slowly pauses its watch, and is disconnected when the history has moved on. On shutdown every
 * waiting answer ends properly, without an event, and its client asks again.
 */

import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import type { Store } from "../store/store.ts";
import type { WatchHandle, WatchOptions } from "../store/watch-hub.ts";
import { successHeaders } from "./keys-answers.ts";
import { watchedEventBody } from "./keys-json.ts";
import { beginSuccess } from "./keys-reply.ts";

export class OpenWatches {
  readonly #store: Store;
  readonly #open = new Map<ServerResponse, WatchHandle>();
  #isEnding = false;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Answers with the events of a watch.
   * @throws {StoreError} historyCleared, before anything is answered.
   */
  answer(reply: FastifyReply, options: WatchOptions): void {
    const response = reply.raw;
    const handle = this.#store.watch(options, {
      event: (event) => {
        const body = watchedEventBody(event);
        if (options.stream === true) return response.write(body);
        response.end(body);
        return true;
      },
      closed: (end) => {
        if (end === "overtaken") response.destroy();
        else response.end();
      },
    });
    beginSuccess(reply, successHeaders(this.#store, this.#store.indexes)).flushHeaders();
    response.on("drain", () => handle.resume());
    response.on("close", () => this.#forget(response));
    this.#open.set(response, handle);
    if (this.#isEnding) this.#end(response);
    else handle.resume();
  }

  /** Ends every answer; new ones end at once. */
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
