/**
 * TLS of a listener, whose certificate may change while it serves: connections that stand keep the certificate they
 * began with, new ones get the new one.
 */

import { createPrivateKey, X509Certificate } from "node:crypto";
import type { RequestListener, ServerOptions } from "node:http";
import { createServer, type Server } from "node:https";
import { checkServerIdentity, createSecureContext } from "node:tls";
import { FileError } from "../lib/watched-files.ts";

/** What a listener shows to its clients, and what it asks of them; all of it PEM. */
export interface ServerTlsMaterial {
  readonly cert: string;
  readonly key: string;
  /** Clients must have a certificate that one of these signed; undefined asks for none. */
  readonly ca: string | undefined;
  /** When the certificate ends, Unix milliseconds. */
  readonly expiresAtMs: number;
}

// Every cipher has forward secrecy: recorded connections stay unreadable even with the key.
const secrecy = {
  minVersion: "TLSv1.2",
  ciphers: [
    ...["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"],
    ...["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"],
    ...["ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"],
  ].join(":"),
} as const;

// A client that dribbles its handshake would hold up the end of the process.
const handshakeTimeoutMs = 10_000;

/**
 * Checks that certificate, key and client authorities can be used together.
 * @throws {FileError}
 */
export function readTlsMaterial([cert = "", key = "", ca]: readonly string[]): ServerTlsMaterial {
  const certificate = readOr("the certificate file has no certificate in PEM", () => new X509Certificate(cert));
  const privateKey = readOr("the key file has no private key in PEM without passphrase", () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) throw new FileError("the key is not that of the certificate");
  if (ca !== undefined) checkAuthorities(ca);
  readOr("the TLS library refuses them together", () => createSecureContext({ cert, key, ca }));
  return { cert, key, ca, expiresAtMs: certificate.validToDate.getTime() };
}

/** True for a certificate that a client takes who came by this name or address. */
export function isForHost(cert: string, host: string): boolean {
  return checkServerIdentity(host, new X509Certificate(cert).toLegacyObject()) === undefined;
}

/** The names and addresses that a certificate is for, such as `DNS:store.lab.svc`. */
export function namesOf(cert: string): readonly string[] {
  return new X509Certificate(cert).subjectAltName?.split(", ") ?? [];
}

export class ServerTls {
  #material: ServerTlsMaterial;
  /** One, or two for `localhost`, which has an address of either kind. */
  readonly #servers = new Set<Server>();

  constructor(material: ServerTlsMaterial) {
    this.#material = material;
  }

  /** Makes a server that speaks HTTP over TLS. */
  createServer(options: ServerOptions, listener: RequestListener): Server {
    const { cert, key, ca } = this.#material;
    const isAsking = ca !== undefined;
    const handshakeTimeout = handshakeTimeoutMs;
    const tls = { ...secrecy, cert, key, ca, requestCert: isAsking, rejectUnauthorized: isAsking, handshakeTimeout };
    const server = createServer({ ...options, ...tls }, listener);
    this.#servers.add(server);
    server.on("close", () => this.#servers.delete(server));
    return server;
  }

  /** Uses this for connections that begin from now on. Whether clients need a certificate does not change. */
  renew(material: ServerTlsMaterial): void {
    this.#material = material;
    const { cert, key, ca } = material;
    for (const server of this.#servers) server.setSecureContext({ ...secrecy, cert, key, ca });
  }
}

/** Node passes over what it cannot read in a list of authorities, and would then trust nobody. */
function checkAuthorities(ca: string): void {
  const blocks = ca.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new FileError("the client authorities have no certificate in PEM");
  for (const [at, block] of blocks.entries()) {
    readOr(`certificate ${at + 1} of the client authorities cannot be read`, () => new X509Certificate(block));
  }
}

/** The library's own messages are not passed on. */
function readOr<Value>(problem: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw new FileError(problem, { cause: error });
  }
}
