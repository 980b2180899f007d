/**
 * The HTTP/2 connection to one endpoint. It opens when a request needs it, and again after it was lost. While streams
 * are open it sends pings, and gives up a connection that does not answer one.
 */

import { type ClientHttp2Session, type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from "node:http2";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { ConnectFailure, connectFailure } from "./connect-failure.ts";
import { type EtcdClock, timeLimit } from "./host.ts";

/** PEM texts, read anew for each connection; what is absent is Node's default. */
export interface EtcdTls {
  readonly ca?: () => string | undefined;
  readonly cert?: () => string | undefined;
  readonly key?: () => string | undefined;
}

export interface EtcdConnectionOptions {
  readonly url: URL;
  readonly tls: EtcdTls;
  readonly clock: EtcdClock;
}

// etcd ends a connection whose pings are less than 5 s apart (--grpc-keepalive-min-time).
const pingEveryMs = 6_500;
const pingLimitMs = 5_000;
const connectLimitMs = 5_000;
const retireAfterMs = 1_000;
const streamWindowBytes = 1024 * 1024;
// Of all streams together, so that a watch that catches up does not slow down the requests beside it.
const connectionWindowBytes = 64 * 1024 * 1024;
// What Node may buffer for one connection before it refuses new streams, in MB: many batches of 1 MiB.
const maxSessionMemoryMb = 256;

export class EtcdConnection {
  readonly authority: string;
  readonly #options: EtcdConnectionOptions;
  #opening: Promise<ClientHttp2Session> | undefined;
  /** Every session that is not closed: the one in use, and older ones whose last streams are open. */
  readonly #sessions = new Set<ClientHttp2Session>();
  #streams = 0;
  #isSuspect = false;
  #isClosed = false;

  constructor(options: EtcdConnectionOptions) {
    this.#options = options;
    this.authority = options.url.origin;
  }

  /** Resolves once requests can be sent. @throws {ConnectFailure} */
  async ready(): Promise<void> {
    await this.#open();
  }

  /** Opens a stream. @throws {ConnectFailure} when there is no connection. */
  async request(method: string, path: string, headers: OutgoingHttpHeaders): Promise<ClientHttp2Stream> {
    const session = await this.#open();
    const stream = streamOf(session, { ...headers, ":method": method, ":path": path });
    this.#streams += 1;
    stream.once("close", () => {
      this.#streams -= 1;
    });
    return stream;
  }

  /** A request got no answer in time: the next ping is due even if no stream is open. */
  suspect(): void {
    this.#isSuspect = true;
  }

  /** Cuts the connection and refuses requests from now on; idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#opening = undefined;
    for (const session of this.#sessions) session.destroy(new ConnectFailure("davit ended the connection"));
  }

  #open(): Promise<ClientHttp2Session> {
    if (this.#isClosed) return Promise.reject(new ConnectFailure("davit ended the connection"));
    if (this.#opening !== undefined) return this.#opening;
    const forget = () => {
      if (this.#opening === opening) this.#opening = undefined;
    };
    const opening = this.#connect(forget);
    this.#opening = opening;
    // Whoever waits gets the rejection, too.
    opening.catch(forget);
    return opening;
  }

  /** @param ended is called when the session takes no more requests. */
  async #connect(ended: () => void): Promise<ClientHttp2Session> {
    const { url, tls, clock } = this.#options;
    const limit = timeLimit(clock, connectLimitMs);
    try {
      const socket = openSocket(url, tls);
      limit.signal.addEventListener("abort", () => socket.destroy(new ConnectFailure("no connection in time")));
      const session = this.#sessionOver(socket, ended);
      await answers(session, socket);
      session.setLocalWindowSize(connectionWindowBytes);
      void this.#ping(session);
      return session;
    } catch (error) {
      const failure = connectFailure(error, isTls(url));
      if (!failure.isEarlyEnd || isTls(url) || !(await speaksTls(url, limit.signal))) throw failure;
      throw new ConnectFailure("it speaks TLS: use https:// in the endpoint", { cause: error });
    } finally {
      limit.cancel();
    }
  }

  #sessionOver(socket: Socket, ended: () => void): ClientHttp2Session {
    const session = connect(this.authority, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: streamWindowBytes },
      maxSessionMemory: maxSessionMemoryMb,
    });
    this.#sessions.add(session);
    // A session that ends by an error of TLS emits no event of its own.
    socket.on("error", (error) => {
      session.destroy(error);
      socket.destroy();
    });
    socket.on("close", () => {
      this.#sessions.delete(session);
      ended();
    });
    session.on("error", ended);
    session.on("goaway", () => {
      ended();
      void this.#retire(session, socket);
    });
    session.on("close", ended);
    return session;
  }

  /** etcd stops: requests get their answers. Then watches end: etcd 3.6 waits for them, and sends them nothing more. */
  async #retire(session: ClientHttp2Session, socket: Socket): Promise<void> {
    const closed = new AbortController();
    socket.once("close", () => closed.abort());
    if (!socket.destroyed) await this.#options.clock.sleep(retireAfterMs, closed.signal);
    session.destroy(new ConnectFailure("it stops"));
  }

  /** Gives up the session when a ping is not answered. Without streams etcd allows almost no pings. */
  async #ping(session: ClientHttp2Session): Promise<void> {
    const { clock } = this.#options;
    const closed = new AbortController();
    session.once("close", () => closed.abort());
    for (;;) {
      if (!session.destroyed) await clock.sleep(pingEveryMs, closed.signal);
      if (session.destroyed) return;
      if (this.#streams === 0 && !this.#isSuspect) continue;
      const limit = timeLimit(clock, pingLimitMs);
      limit.signal.addEventListener("abort", () => session.destroy(new ConnectFailure("it answers no ping")));
      // A session that ends cancels its ping.
      await new Promise<void>((resolve) => {
        if (!session.ping(() => resolve())) resolve();
      });
      limit.cancel();
      this.#isSuspect = false;
    }
  }
}

function streamOf(session: ClientHttp2Session, headers: OutgoingHttpHeaders): ClientHttp2Stream {
  try {
    return session.request(headers);
  } catch (error) {
    throw new ConnectFailure("the connection was lost", { cause: error });
  }
}

/** Resolves with the server's first frame: only then it speaks HTTP/2 and has taken the client's certificate. */
function answers(session: ClientHttp2Session, socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    session.once("remoteSettings", () => resolve());
    session.once("error", reject);
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("closed")));
  });
}

function openSocket(url: URL, tls: EtcdTls): Socket {
  const { host } = placeOf(url);
  const place = { ...placeOf(url), noDelay: true };
  if (!isTls(url)) return connectTcp(place);
  const [ca, cert, key] = [tls.ca?.(), tls.cert?.(), tls.key?.()];
  // Node takes an empty text for none, and would trust every public authority.
  if (ca?.trim() === "") throw new ConnectFailure("the CA file is empty: it needs the certificate of its authority");
  return connectTls({
    ...place,
    ALPNProtocols: ["h2"],
    // A server name is never an address (RFC 6066, section 3). The certificate is checked for the host in both cases.
    ...(isIP(host) === 0 && { servername: host }),
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  });
}

/** True if a server answers a TLS handshake. davit sends no data, so it checks no certificate here. */
function speaksTls(url: URL, limit: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectTls({ ...placeOf(url), rejectUnauthorized: false });
    const over = (does: boolean) => {
      socket.destroy();
      resolve(does);
    };
    socket.once("secureConnect", () => over(true));
    socket.on("error", () => over(false));
    socket.once("close", () => over(false));
    if (limit.aborted) over(false);
    limit.addEventListener("abort", () => over(false));
  });
}

function isTls(url: URL): boolean {
  return url.protocol === "https:";
}

function placeOf(url: URL): { readonly host: string; readonly port: number } {
  const port = Number(url.port === "" ? defaultPorts[isTls(url) ? "https" : "http"] : url.port);
  return { host: url.hostname.replace(/^\[(.*)\]$/, "$1"), port };
}

// That a URL leaves out.
const defaultPorts = { http: "80", https: "443" };
