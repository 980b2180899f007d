/**
 * Parses a few small files without a worker thread, which takes longer to start than these files to parse. For moments
 * when this thread answers no machine: the first look of `davit serve`, and commands. Files are read asynchronously,
 * because a volume may hang.
 */

import { hash } from "node:crypto";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { codeOf } from "../../lib/errors.ts";
import { Admission } from "../admission/admission.ts";
import { signatureOf } from "./list-files.ts";
import type { ParsedFile, ParseRequest } from "./parse-worker.ts";
import { readFileBytes } from "./read-file.ts";

// This much takes some tenths of a second at most, whatever it contains.
const maxBytes = 32 * 1024;

/**
 * Returns the answers in the order of the files; undefined if they are more than a few small files, one of them cannot
 * be read, or this thread is not idle. Then `ManifestParser` must parse them.
 * @param crds texts of the CRD files.
 * @param isIdle false when this thread answers machines.
 */
export async function parseInPlace(
  crds: readonly string[],
  files: readonly ParseRequest[],
  isIdle: () => boolean = () => true,
): Promise<readonly ParsedFile[] | undefined> {
  if (!isIdle() || files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) > maxBytes) return undefined;
  const versions: { readonly bytes: Buffer; readonly signature: string }[] = [];
  let readBytes = 0;
  for (const { path } of files) {
    const version = await readVersion(path);
    readBytes += version?.bytes.length ?? 0;
    // The files may have grown since they were listed.
    if (version === undefined || readBytes > maxBytes) return undefined;
    versions.push(version);
  }
  if (!isIdle()) return undefined;
  if (versions.length === 0) return [];
  const admission = new Admission(crds);
  return versions.map(({ bytes, signature }, at) => ({
    ...readFileBytes(files[at]?.label ?? "", bytes, admission),
    signature,
    digest: hash("sha256", bytes),
  }));
}

/** Reads a file as the worker thread does; undefined if it cannot be read, is no file, or is too large. */
async function readVersion(path: string) {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > maxBytes) return undefined;
    const bytes = await file.readFile();
    return { bytes, signature: signatureOf(await file.stat({ bigint: true })) };
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return undefined;
  }
}
