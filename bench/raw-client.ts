/** A client that costs little beside the measured servers: requests are bytes, and it reads little of the answers. */

import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** One connection: one request at a time. */
export class RawConnection {
  readonly #socket: Socket;
  #received = "";
  #wake: (() => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("latin1").on("data", (text: string) => {
      this.#received += text;
      this.#wake?.();
    });
  }

  /** @param url `http://127.0.0.1:PORT` */
  static async open(url: string): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, "connect");
    return new RawConnection(socket);
  }

  /**
   * Sends a request of `requestText`.
   * @returns the whole answer.
   * @throws {Error} for an answer that is no success.
   */
  async ask(request: string): Promise<string> {
    this.#socket.write(request, "latin1");
    await this.received(isWhole);
    if (!/^HTTP\/1\.1 20[01] /.test(this.#received))
      throw new Error(this.#received.slice(0, this.#received.indexOf("\r")));
    const answer = this.#received;
    this.#received = "";
    return answer;
  }

  /** Sends a request whose answer is waited for elsewhere. */
  send(request: string): void {
    this.#socket.write(request, "latin1");
  }

  /** Resolves when what came since the last answer is enough. */
  async received(isEnough: (text: string) => boolean): Promise<void> {
    while (!isEnough(this.#received)) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** A request, and its form if it has one. */
export function requestText(method: string, target: string, form?: string): string {
  const type = "Content-Type: application/x-www-form-urlencoded\r\n";
  const body = form === undefined ? "" : `${type}Content-Length: ${form.length}\r\n`;
  return `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${body}\r\n${form ?? ""}`;
}

function isWhole(text: string): boolean {
  const end = text.indexOf("\r\n\r\n");
  const [, length] = /^Content-Length: (\d+)\r$/im.exec(text.slice(0, Math.max(end, 0) + 2)) ?? [];
  return end >= 0 && text.length === end + 4 + Number(length ?? Number.NaN);
}

/** Sends requests on 64 connections, each as soon as one is free. */
export async function sendAll(url: string, requests: Iterable<string>): Promise<void> {
  const waiting = requests[Symbol.iterator]();
  const connections = await Promise.all(Array.from({ length: 64 }, () => RawConnection.open(url)));
  try {
    await Promise.all(
      connections.map(async (connection) => {
        for (let next = waiting.next(); next.done !== true; next = waiting.next()) await connection.ask(next.value);
      }),
    );
  } finally {
    for (const connection of connections) connection.close();
  }
}
