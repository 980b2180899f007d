/**
 * Makes X.509 certificates: an authority, and the server certificates that it issues. RFC 5280 defines the fields.
 *
 * - `ec`: ECDSA on P-256 with SHA-256, which every TLS client of an operating system knows.
 * - `rsa`: RSA with 2048 bits and SHA-256, for firmware. iPXE, and UEFI as Debian 12 has it, know no elliptic curves.
 */

// @peculiar/x509 fails unless this package is imported before it.
import "reflect-metadata";
import { createPrivateKey, createPublicKey, KeyObject, webcrypto } from "node:crypto";
import { isIP } from "node:net";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
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
  const key = options.key === undefined ? await newKey(options.kind) : createPrivateKey(options.key);
  return await issue(options, key, [
    new BasicConstraintsExtension(true, 0, true),
    new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
  ]);
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
  const { authority, hosts } = options;
  const kind = kindOf(createPublicKey(authority.key));
  // Old firmware uses an RSA key to encrypt, too: it has no other key exchange.
  const encipherment = kind === "rsa" ? KeyUsageFlags.keyEncipherment : 0;
  return await issue(options, await newKey(kind), [
    new BasicConstraintsExtension(false, undefined, true),
    new KeyUsagesExtension(KeyUsageFlags.digitalSignature | encipherment, true),
    new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
    new SubjectAlternativeNameExtension(hosts.map((value) => ({ type: isIP(value) === 0 ? "dns" : "ip", value }))),
  ]);
}

/** Makes the certificate of a key. Without an authority, the certificate signs itself. */
async function issue(
  { name, validity, authority }: { readonly name: string; readonly validity: Validity; readonly authority?: Issued },
  key: KeyObject,
  extensions: readonly Extension[],
): Promise<Issued> {
  const algorithm = algorithms[kindOf(key)];
  const publicKey = createPublicKey(key).toCryptoKey(algorithm, true, ["verify"]);
  const subject = [{ CN: [name] }];
  const by = authority && new X509Certificate(authority.cert);
  const certificate = await X509CertificateGenerator.create({
    notBefore: dateOf(validity.fromMs),
    notAfter: dateOf(validity.untilMs),
    subject,
    issuer: by?.subjectName ?? subject,
    publicKey,
    signingAlgorithm: algorithm,
    signingKey: (authority === undefined ? key : createPrivateKey(authority.key)).toCryptoKey(algorithm, true, [
      "sign",
    ]),
    extensions: [
      ...extensions,
      await SubjectKeyIdentifierExtension.create(publicKey),
      ...(by === undefined ? [] : [await AuthorityKeyIdentifierExtension.create(by)]),
    ],
  });
  const pem = key.export({ type: "pkcs8", format: "pem" });
  return { cert: `${certificate.toString("pem")}\n`, key: pem.toString() };
}

async function newKey(kind: KeyKind): Promise<KeyObject> {
  const { privateKey } = await webcrypto.subtle.generateKey(algorithms[kind], true, ["sign", "verify"]);
  return KeyObject.from(privateKey);
}

function kindOf({ asymmetricKeyType }: KeyObject): KeyKind {
  return asymmetricKeyType === "rsa" ? "rsa" : "ec";
}
