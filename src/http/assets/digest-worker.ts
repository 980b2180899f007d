/** The program of the thread that hashes files. The sender keeps the descriptor open until the answer has come. */

import { createHash } from "node:crypto";
import { readSync } from "node:fs";
import { parentPort } from "node:worker_threads";
import { assert, codeOf } from "../../lib/errors.ts";
import type { DigestAnswer, DigestJob } from "./digests.ts";

const port = parentPort;
assert(port !== null, "Files are hashed in a worker thread");
const buffer = Buffer.allocUnsafe(1024 * 1024);
port.on("message", (job: DigestJob) => port.postMessage(digestOf(job)));

function digestOf({ descriptor }: DigestJob): DigestAnswer {
  const hash = createHash("sha256");
  try {
    for (let position = 0; ; ) {
      const bytes = readSync(descriptor, buffer, 0, buffer.length, position);
      if (bytes === 0) return { sha256: hash.digest("hex") };
      hash.update(buffer.subarray(0, bytes));
      position += bytes;
    }
  } catch (error) {
    return { code: codeOf(error) ?? "unknown" };
  }
}
