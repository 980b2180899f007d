/**
 * Makes X.509 certificates: an authority, and the server certificates that it issues. RFC 5280 defines the fields.
 *
 * - `ec`: ECDSA on P-256 with SHA-256, which every TLS client of an operating system knows.
 * - `rsa`: RSA with 2048 bits and SHA-256, for firmware. iPXE, and UEFI as Debian 12 has it, know no elliptic curves.
 */

// @peculiar/x509 fails unless this package is imported before it.
import "reflect-metadata";
import { createPublicKey, webcrypto } from "node:crypto";
import { isIP } from "node:net";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";

import { dateOf } from "../../lib/clock.ts";

/** A certificate and its private key (PKCS #8), both in PEM. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

/** Unix milliseconds. */
export interface Validity {
  readonly fromMs: number;
  readonly untilMs: number;
}

const algorithms = {
  ec: { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" },
  rsa: {
    name: "RSASSA-PKCS1-v1_5",
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
    hash: "SHA-256",
  },
} as const;
/** The kind of a certificate's keys. */
export type KeyKind = keyof typeof algorithms;

/** The purpose "TLS server" (RFC 5280, 4.2.1.12). */
const serverAuth = "1.3.6.1.5.5.7.3.1";

/**
 * Makes an authority that issues server certificates and no further authorities.
 * @param options.kind of a new key, and of the keys of the certificates that it issues.
 * @param options.key the private key of the authority that this one replaces; by default a new key.
 */
export async function issueAuthority(options: {
  readonly name: string;
  readonly kind: KeyKind;
  readonly validity: Validity;
  readonly key?: string;
}): Promise<Issued> {
  const keys = await (options.key === undefined ? newKeys(options.kind) : keysOf(options.key));
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...common(options.validity, keys),
    name: [{ CN: [options.name] }],
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return await issued(certificate, keys);
}

/**
 * Makes a server's certificate, signed by the authority, with a key of the same kind.
 * @param options.name for people; clients look only at the hosts.
 * @param options.hosts the server's DNS names and addresses, at least one.
 */
export async function issueServer(options: {
  readonly authority: Issued;
  readonly name: string;
  readonly hosts: readonly string[];
  readonly validity: Validity;
}): Promise<Issued> {
  const { authority, name, hosts, validity } = options;
  const signing = await keysOf(authority.key);
  const kind = kindOf(authority.key);
  const keys = await newKeys(kind);
  // Old firmware uses an RSA key to encrypt, too: it has no other key exchange.
  const encipherment = kind === "rsa" ? KeyUsageFlags.keyEncipherment : 0;
  const by = new X509Certificate(authority.cert);
  const certificate = await X509CertificateGenerator.create({
    ...common(validity, signing),
    subject: [{ CN: [name] }],
    issuer: by.subjectName,
    publicKey: keys.publicKey,
    signingKey: signing.privateKey,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature | encipherment, true),
      new ExtendedKeyUsageExtension([serverAuth]),
      new SubjectAlternativeNameExtension(hosts.map((value) => ({ type: isIP(value) === 0 ? "dns" : "ip", value }))),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(by),
    ],
  });
  return await issued(certificate, keys);
}

function common({ fromMs, untilMs }: Validity, { kind }: Keys) {
  return { notBefore: dateOf(fromMs), notAfter: dateOf(untilMs), signingAlgorithm: algorithms[kind] };
}

type Keys = Awaited<ReturnType<typeof newKeys>>;

async function newKeys(kind: KeyKind) {
  return { kind, ...(await webcrypto.subtle.generateKey(algorithms[kind], true, ["sign", "verify"])) };
}

function kindOf(pem: string): KeyKind {
  return createPublicKey(pem).asymmetricKeyType === "rsa" ? "rsa" : "ec";
}

/** Returns the key pair that belongs to a private key in PEM. */
async function keysOf(pem: string): Promise<Keys> {
  const { subtle } = webcrypto;
  const kind = kindOf(pem);
  const algorithm = algorithms[kind];
  const spki = createPublicKey(pem).export({ type: "spki", format: "der" });
  return {
    kind,
    privateKey: await subtle.importKey("pkcs8", PemConverter.decodeFirst(pem), algorithm, true, ["sign"]),
    publicKey: await subtle.importKey("spki", spki, algorithm, true, ["verify"]),
  };
}

async function issued(certificate: X509Certificate, { privateKey }: Keys): Promise<Issued> {
  const key = PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", privateKey), PemConverter.PrivateKeyTag);
  return { cert: `${certificate.toString("pem")}\n`, key: `${key}\n` };
}
