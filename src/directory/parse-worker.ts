/**
 * The worker thread of the directory source: reads, parses and admits files, so that a large or a bad one never holds
 * the thread that answers machines. It gets the texts of the CRDs as its data and answers each request in order.
 */

import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { Admission } from "../admission/admission.ts";
import { assert, codeOf } from "../lib/errors.ts";
import { type ListedFile, signatureOf } from "./list-files.ts";
import { type ReadFile, readFileBytes, unusableFile } from "./read-file.ts";

export interface ParsedFile extends ReadFile {
  /** The version that was read; undefined when it could not be, so that it is tried again. */
  readonly signature: string | undefined;
}

/** Sent once, when requests can be answered, and for each request. */
export type WorkerAnswer =
  | { readonly kind: "ready" }
  | { readonly kind: "parsed"; readonly files: readonly ParsedFile[] };

const port = parentPort;
assert(port !== null, "The parser runs in a worker thread");
const admission = new Admission(workerData);
port.on("message", (files: readonly ListedFile[]) => {
  answer({ kind: "parsed", files: files.map(parseFile) });
});
answer({ kind: "ready" });

function answer(message: WorkerAnswer): void {
  port?.postMessage(message);
}

function parseFile({ path, label }: ListedFile): ParsedFile {
  try {
    const { bytes, signature } = readWithSignature(path);
    return { ...parseBytes(label, bytes), signature };
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined) throw error;
    const message = `The file cannot be read (${code}): check its permissions and its disk`;
    return { ...unusableFile(label, message), signature: undefined };
  }
}

function parseBytes(label: string, bytes: Uint8Array): ReadFile {
  try {
    return readFileBytes(label, bytes, admission);
  } catch (error) {
    // Ten thousand brackets run the parser out of stack, which is the file's fault. Everything else is davit's.
    if (!(error instanceof RangeError)) throw error;
    return unusableFile(label, "The file cannot be parsed: its values are nested too deeply, write them flatter");
  }
}

/** The signature is taken after the bytes, so that it tells whether they are those that the listing saw. */
function readWithSignature(path: string): { readonly bytes: Buffer; readonly signature: string } {
  const descriptor = openSync(path, "r");
  try {
    const bytes = readFileSync(descriptor);
    return { bytes, signature: signatureOf(fstatSync(descriptor, { bigint: true })) };
  } finally {
    closeSync(descriptor);
  }
}
