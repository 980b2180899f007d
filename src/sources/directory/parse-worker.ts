/**
 * A worker thread of the directory source. It reads, parses and admits files, so that a large or bad file never delays
 * the thread that answers machines. `workerData` has the texts of the CRDs. The thread answers requests in order.
 */

import { hash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { assert, codeOf } from "../../lib/errors.ts";
import { Admission } from "../admission/admission.ts";
import { type ListedFile, noFileProblem, signatureOf } from "./list-files.ts";
import { type FileContent, maxFileBytes, readFileBytes, unusableFile, withProblem } from "./read-file.ts";

/** A file to read. */
export interface ParseRequest extends ListedFile {
  /** The digest of the bytes that were read before. If the file still has these bytes, it is not parsed again. */
  readonly knownDigest?: string;
}

export interface ParsedFile extends FileContent {
  /** The version that was read; undefined if reading failed, so that davit tries again. */
  readonly signature: string | undefined;
  /** The digest of the file's bytes; empty if they were not read. */
  readonly digest: string;
  /** Set if the bytes match the request's digest. Then the content is empty, because the caller has it. */
  readonly isUnchanged?: true;
}

/** A message of the thread: `ready` once, when it can answer requests, and `parsed` for each request. */
export type WorkerAnswer =
  | { readonly kind: "ready" }
  | { readonly kind: "parsed"; readonly files: readonly ParsedFile[] };

const nothing: FileContent = { definitions: [], problems: [], ignored: [] };
const port = parentPort;
assert(port !== null, "The parser runs in a worker thread");
const admission = new Admission(workerData);
port.on("message", (files: readonly ParseRequest[]) => {
  answer({ kind: "parsed", files: files.map(parseFile) });
});
answer({ kind: "ready" });

function answer(message: WorkerAnswer): void {
  port?.postMessage(message);
}

function parseFile(request: ParseRequest): ParsedFile {
  const { label, sizeBytes, signature: listed } = request;
  if (sizeBytes > maxFileBytes) {
    const text = `The file is larger than ${maxFileBytes / 2 ** 20} MiB: split it`;
    return { ...unusableFile(label, "too-large", text), signature: listed, digest: "" };
  }
  try {
    return readListed(request);
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined) throw error;
    const message = `The file cannot be read (${code}): check its permissions and its disk`;
    return { ...unusableFile(label, "unreadable-file", message), signature: undefined, digest: "" };
  }
}

/**
 * Reads a file. Something else may have taken its place since the listing. `O_NONBLOCK` is for a named pipe: without
 * it, opening would wait for a writer. The signature is taken after the bytes, so it shows whether they belong to the
 * listed version.
 */
function readListed({ path, label, knownDigest }: ParseRequest): ParsedFile {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(descriptor, { bigint: true });
    if (!stats.isFile())
      return { ...withProblem(noFileProblem(label, stats)), signature: signatureOf(stats), digest: "" };
    const bytes = readFileSync(descriptor);
    const signature = signatureOf(fstatSync(descriptor, { bigint: true }));
    const digest = hash("sha256", bytes);
    const isUnchanged = digest === knownDigest;
    const read = isUnchanged ? { ...nothing, isUnchanged } : readFileBytes(label, bytes, admission);
    return { ...read, signature, digest };
  } finally {
    closeSync(descriptor);
  }
}
