/** A store that says to its followers what a test tells it to: over a real socket, on loopback. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { encodeFollowLine, type FollowLine } from "../../src/model/follow-line.ts";

/** One follower's request, and the test's end of the answer. */
export interface FollowerConnection {
  /** Path and query as sent. */
  readonly target: string;
  readonly authorization: string | undefined;
  readonly response: ServerResponse;
  /** Sends lines, in one piece. */
  say(...lines: readonly FollowLine[]): void;
}

export class FakeStore {
  readonly #server: Server;
  readonly #come: FollowerConnection[] = [];
  #waiting: ((connection: FollowerConnection) => void) | undefined;

  private constructor(server: Server) {
    this.#server = server;
    server.on("request", (request, response) => this.#take(request, response));
  }

  static async start(port = 0): Promise<FakeStore> {
    const store = new FakeStore(createServer().listen(port, "127.0.0.1"));
    await once(store.#server, "listening");
    return store;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" ? (address?.port ?? 0) : 0;
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${this.port}`);
  }

  /** The next request, when it comes. */
  async next(): Promise<FollowerConnection> {
    const come = this.#come.shift();
    if (come !== undefined) return come;
    return await new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #take({ url = "", headers }: IncomingMessage, response: ServerResponse): void {
    const connection: FollowerConnection = {
      target: url,
      authorization: headers.authorization,
      response,
      say: (...lines) => response.write(lines.map(encodeFollowLine).join("")),
    };
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) this.#come.push(connection);
    else waiting(connection);
  }
}
