/** Starts and stops a server. A start that fails says what to do. A stop gives pending answers 5 s to finish. */

import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import type { Clock } from "../lib/clock.ts";
import { assert, codeOf } from "../lib/errors.ts";
import { StartError } from "../lib/start-error.ts";

export interface ListenOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** The command line option that sets this address, for the error's advice. */
  readonly option: string;
  /** Set if several threads of this process listen on the address: `first` for the first one. */
  readonly shared?: "first" | "other" | undefined;
}

const listenRefusals: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use, by another davit or another program",
  EACCES: "the permission is missing (ports below 1024 need it)",
  EADDRNOTAVAIL: "this computer has no such address",
  EAFNOSUPPORT: "this computer does not support IPv6",
  ENOTFOUND: "the host name is unknown",
};

/**
 * How many connections can wait until davit accepts them. Node's default of 511 is too small: after a power-on,
 * thousands of machines connect within a second. If the queue is full, a client notices only that its request has no
 * answer, and sends it again after 1 to 30 s. Linux limits the queue to net.core.somaxconn, by default 4,096.
 */
const backlog = 16_384;

/**
 * Makes the server listen. On a computer without IPv6, `::` means every IPv4 address.
 * @throws {StartError} with one sentence for the operator.
 */
export async function listen(server: Server, options: ListenOptions): Promise<AddressInfo> {
  const { host, port, shared } = options;
  try {
    // A server that shares an address gets no error if another process shares it, too. So the first thread takes the
    // address alone before it shares it.
    const free = shared === "first" ? await probe({ host, port }) : port;
    server.listen({ host, port: free, backlog, reusePort: shared !== undefined });
    await once(server, "listening");
  } catch (error) {
    if (host === "::" && codeOf(error) === "EAFNOSUPPORT") return await listen(server, { ...options, host: "0.0.0.0" });
    throw listenError(options, error);
  }
  const address = server.address();
  assert(address !== null && typeof address !== "string", "a server that listens on a port has an address");
  return address;
}

/** Listens alone for a moment. @returns the port. */
async function probe(address: Pick<ListenOptions, "host" | "port">): Promise<number> {
  const server = createTcpServer().listen(address);
  await once(server, "listening");
  const bound = server.address();
  server.close();
  await once(server, "close");
  return typeof bound === "object" && bound !== null ? bound.port : address.port;
}

function listenError({ host, port, option }: ListenOptions, cause: unknown): StartError {
  const reason = listenRefusals[codeOf(cause) ?? ""] ?? "the system refuses";
  const address = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  return new StartError(`Cannot listen on "${address}": ${reason}; choose another with ${option}`, { cause });
}

/** How long requests in flight may take after `close`. The whole process has 10 s to end. */
const closeGraceMs = 5_000;
/**
 * How often `close` looks for finished connections. At this interval `close` returns soon after the last answer, and 50
 * checks in 5 s cost nothing.
 */
const closeStepMs = 100;

/** Tracks a server's connections. On close, it ends each connection after its answer is sent. */
export class OpenConnections {
  readonly #server: Server;
  /** The sockets that requests use. With TLS, they carry the decrypted bytes. */
  readonly #sockets = new Set<Socket>();
  /** The TCP sockets. With TLS, a connection in its handshake is in this set, but not yet in `#sockets`. */
  readonly #wires = new Set<Socket>();

  constructor(server: Server) {
    this.#server = server;
    follow(server, "connection", this.#wires);
    follow(server, server instanceof TlsServer ? "secureConnection" : "connection", this.#sockets);
  }

  /** Closes the server; requests in flight finish within 5 s or are cut. */
  async close(clock: Clock): Promise<void> {
    const ended = new AbortController();
    // Node's `close` calls this function, which would cut answers: see `#endIdle`.
    this.#server.closeIdleConnections = () => undefined;
    // For a server that does not listen, `close` passes an error to its callback. The error is ignored: there is
    // nothing to close.
    const closed = new Promise((resolve) => this.#server.close(resolve)).finally(() => ended.abort());
    for (let waitedMs = 0; waitedMs < closeGraceMs && !ended.signal.aborted; waitedMs += closeStepMs) {
      await clock.sleep(closeStepMs, ended.signal);
      this.#endIdle();
    }
    for (const wire of this.#wires) wire.destroy();
    await closed;
  }

  /**
   * Ends connections that wait for no answer. Node's `closeIdleConnections` would destroy a connection as soon as its
   * socket has the answer's last byte. Bytes that the client has not fetched would be lost, such as the end of a
   * kernel. `socket.end` sends all of them first.
   */
  #endIdle(): void {
    for (const socket of this.#sockets) if (answerOf(socket) === undefined) socket.end();
  }
}

function follow(server: Server, event: "connection" | "secureConnection", sockets: Set<Socket>): void {
  server.on(event, (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
}

/**
 * Returns the answer that is being sent on a connection; undefined for none. Node keeps it in a private member of the
 * socket until its last byte is out.
 */
export function answerOf(socket: Socket): object | undefined {
  const answer: unknown = Reflect.get(socket, "_httpMessage");
  return typeof answer === "object" && answer !== null ? answer : undefined;
}
