/** Makes detached OpenPGP signatures: version 4, type 0x00 (over exact bytes), with SHA-256 or a stronger hash. */

import { createMessage, readSignature, sign } from "openpgp";
import { dateOf } from "../../lib/clock.ts";
import type { SigningKey } from "./signing-key.ts";

// The number of the subpacket Issuer Key ID (RFC 9580, 5.2.3.12).
const issuerKeyId = 16;

/** A signature in both of its forms: as a binary packet, and as text with a checksum and a newline at its end. */
export interface DetachedSignature {
  readonly binary: Uint8Array;
  readonly armored: string;
}

/**
 * Signs bytes.
 * @param nowMs the time at which the signature says that it was made, Unix milliseconds.
 * @throws {Error} the library's error, if the key may not sign at that time.
 */
export async function signDetached(
  { privateKey, partId }: SigningKey,
  bytes: Uint8Array,
  nowMs: number,
): Promise<DetachedSignature> {
  const binarySignature = await sign({
    message: await createMessage({ binary: bytes }),
    signingKeys: privateKey,
    signingKeyIDs: partId,
    date: dateOf(nowMs),
    detached: true,
    format: "binary",
  });
  const signature = await readSignature({ binarySignature });
  // GRUB looks for the issuer only in the unhashed subpackets (GRUB 2.06 grub-core/commands/pgp.c). The signature does
  // not cover these, so davit can add one afterwards.
  const body = Buffer.from(partId.toHex(), "hex");
  for (const packet of signature.packets) {
    packet.unhashedSubpackets.push({ type: issuerKeyId, critical: false, body });
  }
  const binary = signature.write();
  if (!(binary instanceof Uint8Array)) throw new Error("a signature of bytes is no stream");
  return { binary, armored: signature.armor() };
}
