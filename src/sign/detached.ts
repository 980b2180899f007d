/** One detached signature: type 0x00 over exact bytes, version 4, SHA-256 or stronger, in both of its forms. */

import { createMessage, readSignature, sign } from "openpgp";
import { dateOf } from "../lib/clock.ts";
import type { SigningKey } from "./signing-key.ts";

// RFC 9580, 5.2.3.12.
const issuerKeyId = 16;

/** A signature as a packet, and as text with a checksum and a newline at its end. */
export interface DetachedSignature {
  readonly binary: Uint8Array;
  readonly armored: string;
}

/**
 * Signs.
 * @param nowMs when the signature says that it was made, Unix milliseconds.
 * @throws {Error} the library's, when the key may not sign at that time.
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
  // GRUB looks for the issuer among the subpackets that are not hashed, and nowhere else (GRUB 2.06
  // grub-core/commands/pgp.c). Nothing signs that area, so it may be filled afterwards.
  const body = Buffer.from(partId.toHex(), "hex");
  for (const packet of signature.packets) {
    packet.unhashedSubpackets.push({ type: issuerKeyId, critical: false, body });
  }
  const binary = signature.write();
  if (!(binary instanceof Uint8Array)) throw new Error("a signature of bytes is no stream");
  return { binary, armored: signature.armor() };
}
