/**
 * The load: 16 connections, each sending its next request when it has the answer to the last. Raw sockets, because a
 * client library would take more processor time than the servers that are measured.
 */

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { answerQuestions } from "./child.ts";

const connectionCount = 16;

answerQuestions(async ({ port, targets, durationMs }) => {
  const requests = (Array.isArray(targets) ? targets : []).map((target) =>
    Buffer.from(`GET ${target} HTTP/1.1\r\nHost: davit\r\nConnection: keep-alive\r\n\r\n`),
  );
  const connections = Array.from({ length: connectionCount }, (_, at) => new Connection(Number(port), requests, at));
  await Promise.all(connections.map((connection) => connection.open()));
  const startedAtMs = performance.now();
  const counts = await Promise.all(connections.map((connection) => connection.run(startedAtMs + Number(durationMs))));
  const seconds = (performance.now() - startedAtMs) / 1000;
  return { count: counts.reduce((sum, count) => sum + count, 0), seconds };
});

class Connection {
  readonly #socket: Socket;
  readonly #requests: readonly Buffer[];
  #next: number;

  constructor(port: number, requests: readonly Buffer[], first: number) {
    this.#socket = connect({ port, host: "127.0.0.1", noDelay: true });
    this.#requests = requests;
    this.#next = first;
  }

  async open(): Promise<void> {
    await once(this.#socket, "connect");
  }

  /** @returns the number of answers. Anything else than a whole answer with status 200 is an error. */
  run(endsAtMs: number): Promise<number> {
    return new Promise((resolve, reject) => {
      let count = 0;
      let received = "";
      this.#socket.on("error", reject);
      this.#socket.on("data", (chunk) => {
        received += chunk.toString("latin1");
        if (!isWhole(received)) return;
        if (!received.startsWith("HTTP/1.1 200 ")) reject(new Error(`unexpected answer: ${received.slice(0, 40)}`));
        received = "";
        count += 1;
        if (performance.now() < endsAtMs) this.#send();
        else this.#socket.destroy();
      });
      this.#socket.once("close", () => resolve(count));
      this.#send();
    });
  }

  #send(): void {
    const request = this.#requests[this.#next % this.#requests.length];
    if (request === undefined) return;
    // Connections start apart and step alike, so together they ask for every machine.
    this.#next += connectionCount;
    this.#socket.write(request);
  }
}

/** True when a head and as many bytes as it announces are there. */
function isWhole(text: string): boolean {
  const head = text.indexOf("\r\n\r\n");
  if (head < 0) return false;
  const mark = text.indexOf("Content-Length: ");
  return text.length >= head + 4 + Number.parseInt(text.slice(mark + "Content-Length: ".length), 10);
}
