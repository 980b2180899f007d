/** The program of the thread that hashes files. The sender keeps the descriptor open until the answer has come. */

import { createReadStream } from "node:fs";
import { codeOf } from "../../lib/errors.ts";
import { digestPieces, sha256Of } from "../../lib/files/file-digest.ts";
import { answerJobs } from "../../lib/job-thread.ts";
import type { DigestAnswer, DigestJob } from "./digests.ts";

answerJobs(digestOf);

async function digestOf({ descriptor: fd }: DigestJob): Promise<DigestAnswer> {
  try {
    return { sha256: await sha256Of(createReadStream("", { fd, start: 0, autoClose: false, ...digestPieces })) };
  } catch (error) {
    return { code: codeOf(error) ?? "unknown" };
  }
}
