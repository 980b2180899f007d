/** Starts and stops a server. A start that fails says what to do. A stop gives pending answers 5 s to finish. */

import { once } from "node:events";
import type { Server } from "node:http";
import {
  type AddressInfo,
  createServer as createTcpServer,
  type ListenOptions as NodeListenOptions,
  type Socket,
  type Server as TcpServer,
} from "node:net";
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
  /**
   * Set if several sockets listen on the address (`socketsOfCrowd`): `first` for the first thread that listens on it,
   * `other` for further threads. Absent: one socket.
   */
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
 * The number of sockets that a thread listens with if it expects a crowd. In each turn of its event loop, libuv accepts
 * one connection of each socket (libuv 1.52 src/unix/stream.c, `uv__server_io`), and handles all requests that have
 * arrived. So with one socket, a thread with 1,000 busy connections accepts few new ones in a second. Linux keeps 4,096
 * waiting connections for each socket. After about 30 s, it resets connections that found no place.
 */
export const socketsOfCrowd = 8;

/**
 * The longest wait for the lock of a port. A davit holds it for milliseconds. Any program can take its name, and must
 * not keep davit from starting.
 */
const lockLimitMs = 2_000;
const lockStepMs = 10;

/** Sockets that listen on one address, for one server. */
interface ListeningSockets {
  readonly address: AddressInfo;
  /** The sockets beside the server's own. Their connections go to the server. */
  readonly others: readonly TcpServer[];
}

async function listen(server: Server, options: ListenOptions, clock: Clock): Promise<ListeningSockets> {
  const { host, shared } = options;
  try {
    if (shared === undefined) return { address: await listenOn(server, options, false), others: [] };
    // The system does not choose a port that is shared already.
    if (shared === "other" || options.port === 0) return await listenForCrowd(server, options);
    return await alone(options, clock, (address) => listenForCrowd(server, address));
  } catch (error) {
    if (host === "::" && codeOf(error) === "EAFNOSUPPORT")
      return await listen(server, { ...options, host: "0.0.0.0" }, clock);
    throw listenError(options, error);
  }
}

type HostAndPort = Pick<ListenOptions, "host" | "port">;

async function listenForCrowd(server: Server, wanted: HostAndPort): Promise<ListeningSockets> {
  // The options that node:http and node:https use for their own connections.
  const socketOptions = { allowHalfOpen: !(server instanceof TlsServer), noDelay: true };
  const others = Array.from({ length: socketsOfCrowd - 1 }, () =>
    createTcpServer(socketOptions, (socket) => server.emit("connection", socket)),
  );
  try {
    const address = await listenOn(server, wanted, true);
    await Promise.all(others.map((each) => listenOn(each, numeric(address), true)));
    return { address, others };
  } catch (error) {
    // A davit that cannot start ends when nothing listens any more.
    for (const each of [server, ...others]) if (each.listening) each.close();
    throw error;
  }
}

/** A bound address. A host name may have another address each time. */
function numeric({ address, port }: AddressInfo): HostAndPort {
  return { host: address, port };
}

/**
 * Runs `listen` if nobody listens on the address. Sockets that share an address get no error from each other, even if
 * they are of two processes. So this function first takes the address alone, and then frees it for `listen`. Meanwhile
 * a lock keeps other davits away.
 * @param listen gets the address. Its host is numeric.
 * @throws {Error} with the code EADDRINUSE.
 */
async function alone<T>(wanted: HostAndPort, clock: Clock, listen: (address: HostAndPort) => Promise<T>): Promise<T> {
  const lock = await lockPort(wanted.port, clock);
  try {
    const probe = createTcpServer();
    const free = await listenOn(probe, wanted, false);
    probe.close();
    await once(probe, "close");
    return await listen(numeric(free));
  } finally {
    lock?.close();
  }
}

/**
 * Takes the lock of a port: a Unix socket whose name is not in the file system. Several addresses can overlap, such as
 * `::` and `127.0.0.1`. So all addresses of a port have one lock.
 * @returns undefined without a lock: some sandboxes do not support such sockets, or another program keeps the name.
 */
async function lockPort(port: number, clock: Clock): Promise<TcpServer | undefined> {
  const lock = createTcpServer((stranger) => stranger.destroy());
  for (let waitedMs = 0; waitedMs < lockLimitMs; waitedMs += lockStepMs) {
    try {
      await listened(lock, { path: `\0davit ${port}` });
      return lock;
    } catch (error) {
      if (codeOf(error) !== "EADDRINUSE") return undefined;
    }
    await clock.sleep(lockStepMs);
  }
  return undefined;
}

async function listenOn(server: TcpServer, { host, port }: HostAndPort, reusePort: boolean): Promise<AddressInfo> {
  await listened(server, { host, port, backlog, reusePort });
  const address = server.address();
  assert(address !== null && typeof address !== "string", "a server that listens on a port has an address");
  return address;
}

async function listened(server: TcpServer, options: NodeListenOptions): Promise<void> {
  server.listen(options);
  await once(server, "listening");
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

/** A server's sockets and connections. On close, it ends each connection after its answer is sent. */
export class OpenConnections {
  readonly #server: Server;
  #others: readonly TcpServer[] = [];
  /** The sockets that requests use. With TLS, they carry the decrypted bytes. */
  readonly #sockets = new Set<Socket>();
  /** The TCP sockets. With TLS, a connection in its handshake is in this set, but not yet in `#sockets`. */
  readonly #wires = new Set<Socket>();

  constructor(server: Server) {
    this.#server = server;
    follow(server, "connection", this.#wires);
    follow(server, server instanceof TlsServer ? "secureConnection" : "connection", this.#sockets);
  }

  /**
   * Makes the server listen. On a computer without IPv6, `::` means every IPv4 address.
   * @throws {StartError} with one sentence for the operator.
   */
  async listen(options: ListenOptions, clock: Clock): Promise<AddressInfo> {
    const { address, others } = await listen(this.#server, options, clock);
    this.#others = others;
    return address;
  }

  /** Closes the server; requests in flight finish within 5 s or are cut. */
  async close(clock: Clock): Promise<void> {
    const ended = new AbortController();
    // Node's `close` calls this function, which would cut answers: see `#endIdle`.
    this.#server.closeIdleConnections = () => undefined;
    // For a server that does not listen, `close` passes an error to its callback. The error is ignored: there is
    // nothing to close.
    const servers = [this.#server, ...this.#others];
    const closed = Promise.all(servers.map((each) => new Promise((resolve) => each.close(resolve))));
    void closed.finally(() => ended.abort());
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
