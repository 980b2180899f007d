/** Explains to the key's owner, in half a sentence, why no part of a private key may sign. */

import { enums, type PrivateKey, type Subkey } from "openpgp";
import { toRfc3339 } from "../lib/clock.ts";

/** The shortest that the library accepts; gpg's default is 3072. */
const minRsaBits = 2048;

/** @returns the first reason that applies, reasons of the whole key before those of its parts. */
export async function whyItMayNotSign(key: PrivateKey, now: Date): Promise<string> {
  if (key.getCreationTime() > now) {
    return `it was made at ${toRfc3339(key.getCreationTime().getTime())}, and this computer's clock is before that`;
  }
  if (await key.isRevoked(undefined, undefined, now)) return "it is revoked";
  const end = whenPast(await key.getExpirationTime(), now);
  if (end !== undefined) return `it expired at ${end}`;
  return weakness(key) ?? (await whySubkeysMayNot(key, now)) ?? noPartMaySign;
}

const noPartMaySign =
  "no part of it may sign: it is for certifying or encrypting only, or its self-signature is too weak or missing";

function weakness(key: PrivateKey): string | undefined {
  const { algorithm, bits = 0 } = key.getAlgorithmInfo();
  if (algorithm === "dsa") return "it is a DSA key, which is too weak: use RSA, ECDSA or Ed25519";
  if (!algorithm.startsWith("rsa") || bits >= minRsaBits) return undefined;
  return `it is an RSA key of ${bits} bits, which is too weak: ${minRsaBits} or more are needed`;
}

async function whySubkeysMayNot(key: PrivateKey, now: Date): Promise<string | undefined> {
  for (const subkey of key.subkeys.filter(isForSigning)) {
    if (subkey.revocationSignatures.length > 0) return "its signing subkey is revoked";
    const end = whenPast(await subkey.getExpirationTime(now), now);
    if (end !== undefined) return `its signing subkey expired at ${end}`;
  }
  return undefined;
}

function isForSigning({ bindingSignatures }: Subkey): boolean {
  return bindingSignatures.some(({ keyFlags }) => ((keyFlags?.[0] ?? 0) & enums.keyFlags.signData) !== 0);
}

/** @returns the end as RFC 3339 if it has passed. */
function whenPast(end: Date | number | null, now: Date): string | undefined {
  return end === null || typeof end === "number" || end > now ? undefined : toRfc3339(end.getTime());
}
