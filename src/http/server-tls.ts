/**
 * The TLS of a listener. The certificate may change while the listener serves: open connections keep the old
 * certificate, later ones get the new one.
 */

import { createPrivateKey, X509Certificate } from "node:crypto";
import type { IncomingMessage, RequestListener, ServerOptions } from "node:http";
import { createServer, type Server } from "node:https";
import type { Socket } from "node:net";
import { checkServerIdentity, createSecureContext, TLSSocket } from "node:tls";
import type { Clock } from "../lib/clock.ts";
import { FileError, WatchedFiles } from "../lib/files/watched-files.ts";
import type { Log } from "../lib/log.ts";
import { peerOf } from "./connection-limit.ts";

/** A listener's certificate and key, and the certificate authorities of its clients; all in PEM. */
export interface ServerTlsMaterial {
  readonly cert: string;
  readonly key: string;
  /** Clients must have a certificate that one of these authorities signed. Undefined if clients need no certificate. */
  readonly ca: string | undefined;
  /** When the certificate begins to be valid, and when it expires; Unix milliseconds. */
  readonly validFromMs: number;
  readonly expiresAtMs: number;
}

// Every cipher has forward secrecy: recorded connections stay unreadable even if somebody gets the key later.
const secrecy = {
  minVersion: "TLSv1.2",
  ciphers: [
    ...["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"],
    ...["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"],
    ...["ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"],
  ].join(":"),
} as const;

/**
 * For machines. The UEFI of Debian 12 supports Diffie-Hellman only without elliptic curves. iPXE of that time supports
 * only the RSA key exchange, which has no forward secrecy.
 */
const forFirmware = {
  minVersion: "TLSv1.2",
  ciphers: [
    secrecy.ciphers,
    ...["DHE-RSA-AES256-GCM-SHA384", "DHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES256-SHA256", "DHE-RSA-AES128-SHA256"],
    ...["AES256-GCM-SHA384", "AES128-GCM-SHA256", "AES256-SHA256", "AES128-SHA256"],
  ].join(":"),
  dhparam: "auto",
  honorCipherOrder: true,
} as const;

/** Who connects. `machines` includes firmware, and clients without a certificate. */
export type TlsClients = "programs" | "machines";

// A client that stalls in its handshake keeps a connection open, also while davit stops. Node's default is 120 s.
const handshakeTimeoutMs = 10_000;

/**
 * Reads a certificate, its key and optional client authorities, and checks that they fit together.
 * @throws {FileError} when one of them cannot be used.
 */
export function readTlsMaterial([cert = "", key = "", ca]: readonly string[]): ServerTlsMaterial {
  const certificate = readOr("the certificate file has no certificate in PEM", () => new X509Certificate(cert));
  const privateKey = readOr("the key file has no private key in PEM without passphrase", () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) throw new FileError("the key is not that of the certificate");
  if (ca !== undefined) checkAuthorities(ca);
  readOr("the TLS library refuses them together", () => createSecureContext({ cert, key, ca }));
  const [validFromMs, expiresAtMs] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()];
  return { cert, key, ca, validFromMs, expiresAtMs };
}

/**
 * True if TLS has verified a certificate of the client, and it is valid now. TLS looks at its time only in a full
 * handshake: a connection can last longer, and a resumed session, too.
 */
export function hasValidCertificate({ socket }: Pick<IncomingMessage, "socket">, nowMs: number): boolean {
  if (!(socket instanceof TLSSocket && socket.authorized)) return false;
  let expiresAtMs = expiries.get(socket);
  if (expiresAtMs === undefined) {
    expiresAtMs = Date.parse(socket.getPeerCertificate().valid_to);
    expiries.set(socket, expiresAtMs);
  }
  return nowMs < expiresAtMs;
}

/** Reading a certificate takes longer than most answers. */
const expiries = new WeakMap<TLSSocket, number>();

/** True if the certificate is valid for this host name or address. */
export function isForHost(cert: string, host: string): boolean {
  return checkServerIdentity(host, new X509Certificate(cert).toLegacyObject()) === undefined;
}

/** The names and addresses that a certificate is for, such as `DNS:store.lab.svc`. */
export function namesOf(cert: string): readonly string[] {
  return new X509Certificate(cert).subjectAltName?.split(", ") ?? [];
}

export class ServerTls {
  #material: ServerTlsMaterial;
  /** The open servers with this TLS: `renew` updates them. */
  readonly #servers = new Set<Server>();
  /** Connections of clients with a certificate, and handshakes that may become such. `renew` ends them. */
  readonly #verified = new Set<Socket>();

  readonly #clients: TlsClients;

  constructor(material: ServerTlsMaterial, clients: TlsClients = "programs") {
    this.#material = material;
    this.#clients = clients;
  }

  get #rules() {
    return this.#clients === "machines" ? forFirmware : secrecy;
  }

  /** The certificate in use, and its key. */
  get material(): ServerTlsMaterial {
    return this.#material;
  }

  /** Makes a server that speaks HTTP over TLS. */
  createServer(options: ServerOptions, listener: RequestListener): Server {
    const { cert, key, ca } = this.#material;
    const isAsking = ca !== undefined;
    const handshakeTimeout = handshakeTimeoutMs;
    const rejectUnauthorized = isAsking && this.#clients === "programs";
    const tls = { ...this.#rules, cert, key, ca, requestCert: isAsking, rejectUnauthorized, handshakeTimeout };
    const server = createServer({ ...options, ...tls }, listener);
    this.#servers.add(server);
    server.on("close", () => this.#servers.delete(server));
    if (isAsking) this.#followClients(server);
    return server;
  }

  /**
   * Uses this material for new connections. If the client authorities change, it ends the connections of clients with a
   * certificate: otherwise a client would keep its access for as long as its connection. A change cannot switch the
   * check of client certificates on or off.
   */
  renew(material: ServerTlsMaterial): void {
    const isOther = material.ca !== this.#material.ca;
    this.#material = material;
    const { cert, key, ca } = material;
    for (const server of this.#servers) server.setSecureContext({ ...this.#rules, cert, key, ca });
    if (isOther) for (const socket of this.#verified) socket.destroy();
  }

  /** A handshake uses the authorities with which it began. So it counts as verified until it has ended. */
  #followClients(server: Server): void {
    const handshakes = new Map<string, Socket>();
    server.on("connection", (wire: Socket) => {
      const peer = peerOf(wire);
      handshakes.set(peer, wire);
      this.#follow(wire);
      wire.once("close", () => handshakes.delete(peer));
    });
    server.on("secureConnection", (socket: TLSSocket) => {
      const wire = handshakes.get(peerOf(socket));
      if (wire !== undefined) this.#verified.delete(wire);
      if (socket.authorized) this.#follow(socket);
    });
  }

  #follow(socket: Socket): void {
    this.#verified.add(socket);
    socket.once("close", () => this.#verified.delete(socket));
  }
}

/**
 * Checks that every authority is readable. Node skips an unreadable authority silently, and would then refuse the
 * clients whose certificates this authority has signed.
 */
function checkAuthorities(ca: string): void {
  const blocks = ca.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new FileError("the client authorities have no certificate in PEM");
  for (const [at, block] of blocks.entries()) {
    readOr(`certificate ${at + 1} of the client authorities cannot be read`, () => new X509Certificate(block));
  }
}

/** Runs `read`, and replaces the library's error by a FileError with our own words. */
function readOr<Value>(problem: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw new FileError(problem, { cause: error });
  }
}

interface TlsFilesOptions {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile?: string | undefined;
  readonly clients: TlsClients;
  /**
   * Judges the first files and each change. It may log.
   * @throws {FileError} for files that must not be used.
   */
  readonly accept: (material: ServerTlsMaterial, isFirst: boolean) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** The certificate of a listener, from files that may change while it serves. The last good files count. */
export class TlsFiles {
  readonly tls: ServerTls;
  readonly #files: WatchedFiles<ServerTlsMaterial>;

  private constructor(tls: ServerTls, files: WatchedFiles<ServerTlsMaterial>) {
    this.tls = tls;
    this.#files = files;
  }

  /**
   * Reads the files, and follows them from then on.
   * @throws {StartError} when they cannot be used.
   */
  static async open({ certFile, keyFile, clientCaFile, clients, accept, clock, log }: TlsFilesOptions) {
    let tls: ServerTls | undefined;
    const files = new WatchedFiles({
      paths: [certFile, keyFile, ...(clientCaFile === undefined ? [] : [clientCaFile])],
      secretPaths: [keyFile],
      parse: (texts) => {
        const material = readTlsMaterial(texts);
        accept(material, tls === undefined);
        return material;
      },
      changed: (material) => tls?.renew(material),
      clock,
      log,
    });
    tls = new ServerTls(await files.start(), clients);
    return new TlsFiles(tls, files);
  }

  /** A sentence that says why the newest files are not used; empty if they are. */
  get problem(): string {
    return this.#files.problem;
  }

  /** Stops following the files. Idempotent. */
  stop(): void {
    this.#files.stop();
  }
}
