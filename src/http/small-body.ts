/** Reads small request bodies, such as reports of machines. */

import type { IncomingMessage } from "node:http";
import { RequestError } from "./errors.ts";

/**
 * Reads a body as UTF-8. The promise never settles if the connection ends first, because then no answer can be sent.
 * @throws {RequestError} bodyTooLarge. Then the rest of the body is read and dropped first, because a client that still
 * sends may never read the answer.
 */
export function readSmallBody(request: IncomingMessage, maxBytes: number): Promise<string> {
  // A client that announces too much need not send it: it gets the answer now, and its connection ends.
  if (Number(request.headers["content-length"] ?? 0) > maxBytes)
    return Promise.reject(new RequestError("bodyTooLarge", { connection: "close" }));
  const chunks: Buffer[] = [];
  let bytes = 0;
  return new Promise((resolve, reject) => {
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBytes) chunks.push(chunk);
      else chunks.length = 0;
    });
    request.on("end", () => {
      if (bytes > maxBytes) reject(new RequestError("bodyTooLarge"));
      else resolve(Buffer.concat(chunks).toString());
    });
  });
}
