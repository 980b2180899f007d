/**
 * Makes X.509 certificates: an authority, and the server certificates that it issues. They use ECDSA on P-256 with
 * SHA-256, which every TLS client knows. RFC 5280 defines the fields.
 */

// The certificate package needs this import first.
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

import { dateOf } from "../lib/clock.ts";

/** A certificate and its private key (PKCS #8), PEM. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

/** Unix milliseconds. */
export interface Validity {
  readonly fromMs: number;
  readonly untilMs: number;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
/** RFC 5280, 4.2.1.12: servers of TLS. */
const serverAuth = "1.3.6.1.5.5.7.3.1";

/**
 * Makes an authority that issues server certificates and no further authorities.
 * @param options.key the key of the authority that it replaces; a new one unless given.
 */
export async function issueAuthority(options: {
  readonly name: string;
  readonly validity: Validity;
  readonly key?: string;
}): Promise<Issued> {
  const keys = await (options.key === undefined ? newKeys() : keysOf(options.key));
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...common(options.validity),
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
 * Makes a server's certificate, with its chain.
 * @param options.hosts its DNS names and addresses, at least one.
 */
export async function issueServer(options: {
  readonly authority: Issued;
  readonly hosts: readonly string[];
  readonly validity: Validity;
}): Promise<Issued> {
  const { authority, hosts, validity } = options;
  const keys = await newKeys();
  const by = new X509Certificate(authority.cert);
  const certificate = await X509CertificateGenerator.create({
    ...common(validity),
    subject: [{ CN: ["davit store"] }],
    issuer: by.subjectName,
    publicKey: keys.publicKey,
    signingKey: (await keysOf(authority.key)).privateKey,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([serverAuth]),
      new SubjectAlternativeNameExtension(hosts.map((value) => ({ type: isIP(value) === 0 ? "dns" : "ip", value }))),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(by),
    ],
  });
  return await issued(certificate, keys);
}

function common({ fromMs, untilMs }: Validity) {
  return { notBefore: dateOf(fromMs), notAfter: dateOf(untilMs), signingAlgorithm: algorithm };
}

type Keys = Awaited<ReturnType<typeof newKeys>>;

function newKeys() {
  return webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
}

/** The key pair of a private key in PEM. */
async function keysOf(pem: string): Promise<Keys> {
  const { subtle } = webcrypto;
  const spki = createPublicKey(pem).export({ type: "spki", format: "der" });
  return {
    privateKey: await subtle.importKey("pkcs8", PemConverter.decodeFirst(pem), algorithm, true, ["sign"]),
    publicKey: await subtle.importKey("spki", spki, algorithm, true, ["verify"]),
  };
}

async function issued(certificate: X509Certificate, { privateKey }: Keys): Promise<Issued> {
  const key = PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", privateKey), PemConverter.PrivateKeyTag);
  return { cert: `${certificate.toString("pem")}\n`, key: `${key}\n` };
}
