/**
 * Downloads one asset. The file gets its name only after its SHA-256 was checked, so an asset under its name is always
 * complete and correct. Until then the name begins with a dot, and the boot service does not serve the file. After a
 * broken connection the next attempt fetches only the missing bytes, if the server supports ranges.
 */

import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, realpath, rename, rm } from "node:fs/promises";
import { get as getByHttp, type IncomingMessage } from "node:http";
import { get as getByHttps } from "node:https";
import { basename, dirname, join, sep } from "node:path";
import { backoffMs } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { codeOf } from "../lib/errors.ts";
import { digestPieces, sha256Of } from "../lib/file-digest.ts";
import { diskFiles } from "../lib/files.ts";
import type { WantedAsset } from "./asset-list.ts";
import { DownloadError } from "./download-error.ts";

export interface DownloadOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called with the number of bytes that are downloaded so far. */
  readonly progress: (bytes: number) => void;
  /** Called before the wait for a retry. */
  readonly retrying: (why: string, inMs: number) => void;
}

const attempts = 5;
const retry = { firstMs: 1_000, capMs: 30_000 };
/** The longest wait that davit accepts from a server's `Retry-After`. */
const maxRetryAfterMs = 60_000;

/**
 * Downloads an asset unless the file exists with this SHA-256.
 * @returns true if it was downloaded.
 * @throws {DownloadError} or a system error of the disk.
 */
export async function download(asset: WantedAsset, options: DownloadOptions): Promise<boolean> {
  const path = join(options.directory, asset.path);
  if ((await digestOf(path)) === asset.sha256) return false;
  await mkdir(dirname(path), { recursive: true });
  await refuseOutside(options.directory, dirname(path));
  const unfinished = join(dirname(path), `.${basename(path)}.download`);
  try {
    await fetchInto(unfinished, asset, options);
    await rename(unfinished, path);
    await diskFiles.syncDirectory(dirname(path));
    return true;
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** Refuses a directory that a link puts outside the assets directory: the boot service would not serve its files. */
async function refuseOutside(root: string, directory: string): Promise<void> {
  const [realRoot, real] = [await realpath(root), await realpath(directory)];
  if (real === realRoot || real.startsWith(realRoot + sep)) return;
  throw new DownloadError("a link in its path leads out of the assets directory");
}

/** Returns a file's SHA-256; undefined for a missing file. */
async function digestOf(path: string): Promise<string | undefined> {
  try {
    return await sha256Of(createReadStream(path, digestPieces));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** The part of an asset that is downloaded so far. */
interface PartialDownload {
  readonly file: FileHandle;
  hash: Hash;
  sizeBytes: number;
  /** The server's ETag for the version of the file that is being downloaded; undefined without an ETag. */
  etag: string | undefined;
}

async function fetchInto(path: string, asset: WantedAsset, options: DownloadOptions): Promise<void> {
  const part: PartialDownload = {
    file: await open(path, "w", 0o644),
    hash: createHash("sha256"),
    sizeBytes: 0,
    etag: undefined,
  };
  try {
    for (let attempt = 0; ; attempt++) {
      const failure = await tryToFetch(part, asset, options);
      if (failure === undefined) break;
      if (options.signal.aborted) throw new DownloadError("it was stopped");
      if (!failure.mayPass || attempt === attempts - 1) throw failure;
      const waitMs = Math.max(backoffMs(attempt, retry), Math.min(failure.retryAfterMs, maxRetryAfterMs));
      options.retrying(failure.message, waitMs);
      await options.clock.sleep(waitMs, options.signal);
    }
    const digest = part.hash.digest("hex");
    if (digest !== asset.sha256) throw new DownloadError(`its SHA-256 is ${digest}, not ${asset.sha256}`);
    await part.file.sync();
  } finally {
    await part.file.close();
  }
}

/** Sends one request and appends the answer. It throws errors of the disk, and returns those of the network. */
async function tryToFetch(
  part: PartialDownload,
  { url }: WantedAsset,
  { signal, progress }: DownloadOptions,
): Promise<DownloadError | undefined> {
  let answer: IncomingMessage;
  try {
    answer = await get(url, { headers: headersFor(part), signal });
  } catch (error) {
    return unreachable(error);
  }
  const refusal = refusalOf(answer);
  if (refusal !== undefined) {
    answer.destroy();
    return refusal;
  }
  if (answer.statusCode !== 206) await beginAnew(part, answer.headers.etag);
  const pieces = answer.iterator({ destroyOnReturn: true });
  for (;;) {
    const piece = await pieces.next().catch((error: unknown) => codeOf(error) ?? "the connection failed");
    if (typeof piece === "string") {
      return new DownloadError(`the connection broke after ${part.sizeBytes} bytes (${piece})`, { mayPass: true });
    }
    if (piece.done === true) return undefined;
    await append(part, piece.value);
    progress(part.sizeBytes);
  }
}

function headersFor({ sizeBytes, etag }: PartialDownload): Record<string, string> {
  // No compression: the SHA-256 is of the plain bytes, and kernels are compressed already.
  const headers = { "accept-encoding": "identity", "user-agent": "davit" };
  // A weak ETag does not guarantee equal bytes, so it must not continue a download (RFC 9110, 13.1.5).
  const canContinue = sizeBytes > 0 && etag !== undefined && !etag.startsWith("W/");
  return canContinue ? { ...headers, range: `bytes=${sizeBytes}-`, "if-range": etag } : headers;
}

/** Returns why the server refused; undefined if the answer has the requested bytes. */
function refusalOf({ statusCode: status = 0, headers }: IncomingMessage): DownloadError | undefined {
  if (status === 200 || status === 206) return undefined;
  const mayPass = status === 408 || status === 429 || status >= 500;
  const retryAfterMs = Number(headers["retry-after"] ?? 0) * 1_000;
  return new DownloadError(`the server answers ${status}`, {
    mayPass,
    retryAfterMs: Number.isFinite(retryAfterMs) ? retryAfterMs : 0,
  });
}

async function beginAnew(part: PartialDownload, etag: string | undefined): Promise<void> {
  await part.file.truncate(0);
  part.hash = createHash("sha256");
  part.sizeBytes = 0;
  part.etag = etag;
}

async function append(part: PartialDownload, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await part.file.write(bytes, written, undefined, part.sizeBytes + written);
    written += bytesWritten;
  }
  part.hash.update(bytes);
  part.sizeBytes += bytes.length;
}

function unreachable(error: unknown): DownloadError {
  if (error instanceof DownloadError) return error;
  return new DownloadError(`the server cannot be reached (${codeOf(error) ?? "no code"})`, { mayPass: true });
}

interface GetOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

// As many redirects as browsers follow.
const mostRedirects = 20;
const redirectStatuses: ReadonlySet<number | undefined> = new Set([301, 302, 303, 307, 308]);

/**
 * Sends a request over HTTP or HTTPS, and follows redirects. It does not use Node's `fetch`, which can end the process:
 * an assertion of its parser fails if a server without keep-alive closes the connection before its answer is read.
 * @returns the answer, whatever its status. The caller must read or destroy it.
 * @throws {DownloadError} for too many redirects or one to another kind of URL; else the connection's own errors.
 */
async function get(url: URL, options: GetOptions): Promise<IncomingMessage> {
  let target = url;
  for (let redirects = 0; redirects <= mostRedirects; redirects++) {
    const answer = await ask(target, options);
    const { location } = answer.headers;
    if (!redirectStatuses.has(answer.statusCode) || location === undefined) return answer;
    answer.destroy();
    const next = URL.parse(location, target.href);
    if (next === null || !/^https?:$/.test(next.protocol)) break;
    target = next;
  }
  throw new DownloadError("it is redirected in a circle, or to what is not fetched");
}

function ask(url: URL, options: GetOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = url.protocol === "https:" ? getByHttps(url, options, resolve) : getByHttp(url, options, resolve);
    sent.on("error", reject);
  });
}
