/**
 * The token in the URL of the last file of a boot script. davit repeats a script to every address, so the script has no
 * report token: by that, a stranger could report labels or the end of the install. A claim token says only that the
 * install begins, and no report token can be made from it.
 */

import { hash } from "node:crypto";

const idBytes = 8;
const proofBytes = 16;

/** Returns the claim token that belongs to a report token: 32 characters that begin with the same id. */
export function claimTokenOf(reportToken: string): string {
  const id = Buffer.from(reportToken, "base64url").subarray(0, idBytes);
  const proof = hash("sha256", `claim|${reportToken}`, "buffer").subarray(0, proofBytes);
  return Buffer.concat([id, proof]).toString("base64url");
}
