/** Starts and stops listening: errors say what to do, and stopping cuts no answer short. */

import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
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
}

const listenRefusals: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use, by another davit or another program",
  EACCES: "the permission is missing (ports below 1024 need it)",
  EADDRNOTAVAIL: "this machine has no such address",
  EAFNOSUPPORT: "this machine does not speak that kind of address",
  ENOTFOUND: "the host name is unknown",
};

/**
 * The most connections that wait to be accepted. Node's own 511 are too few: thousands of machines may connect within a
 * second after a power-on. A client that finds no room notices only when it sends its request again, 1 to 30 s later.
 * Linux limits this to net.core.somaxconn, which is 4,096 by default.
 */
const backlog = 16_384;

/**
 * Listens. Where IPv6 is off, `::` means every IPv4 address.
 * @throws {StartError} with one sentence for the operator.
 */
export async function listen(server: Server, options: ListenOptions): Promise<AddressInfo> {
  const { host, port } = options;
  try {
    server.listen({ host, port, backlog });
    await once(server, "listening");
  } catch (error) {
    if (host === "::" && codeOf(error) === "EAFNOSUPPORT") return await listen(server, { ...options, host: "0.0.0.0" });
    throw listenError(options, error);
  }
  const address = server.address();
  assert(address !== null && typeof address !== "string", "a server that listens on a port has an address");
  return address;
}

function listenError({ host, port, option }: ListenOptions, cause: unknown): StartError {
  const reason = listenRefusals[codeOf(cause) ?? ""] ?? "the system refuses";
  const address = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  return new StartError(`Cannot listen on "${address}": ${reason}; choose another with ${option}`, { cause });
}

/** How long requests in flight may take after `close`. The whole process has 10 s to end. */
const closeGraceMs = 5_000;
/** The interval between checks while closing: short enough to notice an end soon, and 50 checks cost nothing. */
const closeStepMs = 100;

/** Follows a server's connections, to end each after its answer is out. */
export class OpenConnections {
  readonly #server: Server;
  /** The sockets that requests use: above TLS, if there is TLS. */
  readonly #sockets = new Set<Socket>();
  /** The sockets below: with TLS, a connection in its handshake is only here. */
  readonly #wires = new Set<Socket>();

  constructor(server: Server) {
    this.#server = server;
    follow(server, "connection", this.#wires);
    follow(server, server instanceof TlsServer ? "secureConnection" : "connection", this.#sockets);
  }

  /** Closes the server; requests in flight finish within 5 s or are cut. */
  async close(clock: Clock): Promise<void> {
    const ended = new AbortController();
    // Node would call this at once, see `#endIdle`.
    this.#server.closeIdleConnections = () => undefined;
    // A server that does not listen has nothing to close.
    const closed = new Promise((resolve) => this.#server.close(resolve)).finally(() => ended.abort());
    for (let waitedMs = 0; waitedMs < closeGraceMs && !ended.signal.aborted; waitedMs += closeStepMs) {
      await clock.sleep(closeStepMs, ended.signal);
      this.#endIdle();
    }
    for (const wire of this.#wires) wire.destroy();
    await closed;
  }

  /**
   * Node's `closeIdleConnections` calls a connection idle when the socket has the answer's last byte, and destroys what
   * the client has not fetched yet: a kernel would lose its end. So davit waits until the client has all bytes.
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

/** The answer that a connection waits for; Node keeps it on the socket until its last byte is out. */
export function answerOf(socket: Socket): object | undefined {
  const answer: unknown = Reflect.get(socket, "_httpMessage");
  return typeof answer === "object" && answer !== null ? answer : undefined;
}
