/** Hashes files without keeping them in memory. */

import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** How to open the stream: larger pieces take less processor time than Node's 64 KiB. */
export const digestPieces = { highWaterMark: 1024 * 1024 } as const;

/** Returns the SHA-256 of a stream in 64 hexadecimal digits. @throws the errors of the stream. */
export async function sha256Of(stream: Readable): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(stream, hash);
  return hash.digest("hex");
}
