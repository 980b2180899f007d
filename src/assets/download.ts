/**
 * Downloads one asset. The file gets its name only after its SHA-256 was checked, so an asset under its name is always
 * complete and correct. Until then the name begins with a dot, and the boot service does not serve the file. After a
 * broken connection, a stop or a crash, davit fetches only the missing bytes, if the server supports ranges.
 */

import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, mkdir, open, realpath, rename, rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { basename, dirname, join, sep } from "node:path";
import { backoffMs } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { codeOf } from "../lib/errors.ts";
import { diskFiles } from "../lib/files/files.ts";
import type { ListedAsset } from "./asset-list.ts";
import { type Ask, askServer, DownloadError, get } from "./get.ts";

export interface DownloadOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Returns the SHA-256 of an open file, in 64 hexadecimal digits. */
  readonly sha256: (file: FileHandle) => Promise<string>;
  /** Called with the number of bytes that davit has so far, and the size of the file if the server sends it. */
  readonly progress: (bytes: number, totalBytes: number | undefined) => void;
  /** Called before the wait for a retry. */
  readonly retrying: (why: string, inMs: number) => void;
  /** Returns why davit must not request a URL; undefined if it may. It gets redirects, too. Default: it may. */
  readonly refusalOf?: (url: URL) => string | undefined;
  /** Returns how many more bytes davit may write. Default: no limit. */
  readonly roomBytes?: () => number;
  /** The most attempts without any progress. Default: 5. */
  readonly attempts?: number;
  /** Sends the requests. Default: without credentials. */
  readonly ask?: Ask;
  /** The download ends, so that others get their turn, if fewer bytes arrive in a minute. Default: any rate will do. */
  readonly leastBytesPerMinute?: number;
  /** davit ends a connection on which nothing arrives for so long. Default: 60 s. */
  readonly silenceMs?: number;
  /** True if davit must not replace a file with this name and another SHA-256. */
  readonly keepsOthers?: boolean;
}

const retry = { firstMs: 1_000, capMs: 30_000 };
/** The longest wait that davit accepts from a server's `Retry-After`. */
const maxRetryAfterMs = 60_000;

/**
 * Downloads an asset unless the file exists with this SHA-256.
 * @returns true if it was downloaded.
 * @throws {DownloadError} or a system error of the disk.
 */
export async function download(asset: ListedAsset, options: DownloadOptions): Promise<boolean> {
  const path = join(options.directory, asset.path);
  if ((await digestOf(path, options)) === asset.sha256) return false;
  await refuseOutside(options.directory, dirname(path));
  await mkdir(dirname(path), { recursive: true });
  await refuseOutside(options.directory, dirname(path));
  const unfinished = unfinishedPath(asset, options.directory);
  try {
    await fetchInto(unfinished, asset, options);
    if (options.keepsOthers === true && (await isThere(path)))
      throw new DownloadError("another file got its name meanwhile: remove that file, or use another name");
    await rename(unfinished, path);
  } catch (error) {
    const goesOn = options.signal.aborted || (error instanceof DownloadError && error.mayPass);
    if (!goesOn || ((await statsOf(unfinished))?.size ?? 0) === 0) await rm(unfinished, { force: true });
    throw error;
  }
  await diskFiles.syncDirectory(dirname(path));
  return true;
}

/** Removes the part of an asset that is downloaded so far. */
export async function removeUnfinished(asset: ListedAsset, directory: string): Promise<void> {
  await rm(unfinishedPath(asset, directory), { force: true });
}

/** A part of the digest is in the name, so that no download continues with the bytes of another file. */
function unfinishedPath({ path, sha256 }: ListedAsset, directory: string): string {
  return join(directory, dirname(path), `.${basename(path)}.${sha256.slice(0, 8)}`);
}

/** Refuses a directory that a link puts outside the assets directory: the boot service would not serve its files. */
async function refuseOutside(root: string, directory: string): Promise<void> {
  const realRoot = await realpath(root);
  const real = await realOfNearest(directory);
  if (real === realRoot || real.startsWith(realRoot + sep)) return;
  throw new DownloadError("a link in its path leads out of the assets directory: remove the link");
}

/** Resolves the links of a directory, or of the nearest directory above it that exists. */
async function realOfNearest(directory: string): Promise<string> {
  try {
    return await realpath(directory);
  } catch (error) {
    if (codeOf(error) !== "ENOENT" || dirname(directory) === directory) throw error;
    return await realOfNearest(dirname(directory));
  }
}

/** Returns a file's SHA-256; undefined for a missing file. */
async function digestOf(path: string, { sha256 }: Pick<DownloadOptions, "sha256">): Promise<string | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
  try {
    return await sha256(file);
  } finally {
    await file.close();
  }
}

async function isThere(path: string): Promise<boolean> {
  return (await statsOf(path)) !== undefined;
}

async function statsOf(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** The part of an asset that is downloaded so far. */
interface PartialDownload {
  readonly file: FileHandle;
  sizeBytes: number;
  /** The server's ETag for the version of the file that is being downloaded; undefined if it is not known. */
  etag: string | undefined;
  /** True if nothing proves that all bytes are of one version. If the digest is wrong, one more download may help. */
  isDoubtful: boolean;
  /** True if the server calls its answer a web page. */
  isPage: boolean;
}

async function fetchInto(path: string, asset: ListedAsset, options: DownloadOptions): Promise<void> {
  const file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o644);
  try {
    const { size: sizeBytes } = await file.stat();
    const part = { file, sizeBytes, etag: undefined, isDoubtful: sizeBytes > 0, isPage: false };
    options.progress(sizeBytes, undefined);
    await fetchWhole(part, asset, options);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Downloads until the digest is right. */
async function fetchWhole(part: PartialDownload, asset: ListedAsset, options: DownloadOptions): Promise<void> {
  for (;;) {
    await fetchToEnd(part, asset, options);
    if ((await options.sha256(part.file)) === asset.sha256) return;
    if (!part.isDoubtful) throw wrongDigest(asset, part);
    await beginAnew(part, undefined);
  }
}

/** Downloads until the server says that these are all bytes. */
async function fetchToEnd(part: PartialDownload, asset: ListedAsset, options: DownloadOptions): Promise<void> {
  const { attempts = 5 } = options;
  let mostBytes = part.sizeBytes;
  for (let fruitless = 0; ; ) {
    const failure = await tryToFetch(part, asset, options);
    if (failure === undefined) return;
    if (options.signal.aborted) throw new DownloadError("it was stopped");
    if (failure === tooSlow) throw failure;
    // Attempts count only from the last progress: a server that often breaks off can still send a large file.
    fruitless = part.sizeBytes > mostBytes ? 0 : fruitless + 1;
    mostBytes = Math.max(mostBytes, part.sizeBytes);
    if (!failure.mayPass || fruitless >= attempts) throw failure;
    const backoff = backoffMs(Math.max(0, fruitless - 1), retry);
    const waitMs = Math.max(backoff, Math.min(failure.retryAfterMs, maxRetryAfterMs));
    options.retrying(failure.message, waitMs);
    await options.clock.sleep(waitMs, options.signal);
  }
}

/** Does not name the digest of the file: whoever may write a Profile would learn that of any file of the server. */
function wrongDigest({ sha256 }: ListedAsset, { isPage }: PartialDownload): DownloadError {
  const cure = isPage ? "the server sent a web page: correct url" : "correct url or sha256";
  return new DownloadError(`its SHA-256 is not ${sha256}: ${cure}`);
}

const tooSlow = new DownloadError("the server sends too slowly", { mayPass: true });

/** Sends one request and appends the answer, as long as the server is not too slow. Otherwise as `requestRest`. */
async function tryToFetch(
  part: PartialDownload,
  asset: ListedAsset,
  options: DownloadOptions,
): Promise<DownloadError | undefined> {
  const { leastBytesPerMinute: leastBytes = 0, clock } = options;
  const [ended, slow] = [new AbortController(), new AbortController()];
  const watch = async () => {
    for (let before = part.sizeBytes; ; before = part.sizeBytes) {
      await clock.sleep(60_000, ended.signal);
      if (ended.signal.aborted) return;
      if (part.sizeBytes - before < leastBytes) slow.abort();
    }
  };
  if (leastBytes > 0) void watch();
  try {
    const signal = AbortSignal.any([options.signal, slow.signal]);
    const failure = await requestRest(part, asset, { ...options, signal });
    return failure !== undefined && slow.signal.aborted ? tooSlow : failure;
  } finally {
    ended.abort();
  }
}

/** Sends one request and appends the answer. It throws errors of the disk, and returns those of the network. */
async function requestRest(
  part: PartialDownload,
  { url }: ListedAsset,
  options: DownloadOptions,
): Promise<DownloadError | undefined> {
  const { signal, silenceMs: timeout = 60_000, ask = askServer, refusalOf = () => undefined } = options;
  let answer: IncomingMessage;
  try {
    answer = await get(url, { headers: headersFor(part), signal, timeout }, { ask, refusalOf });
  } catch (error) {
    return unreachable(error);
  }
  if (answer.statusCode === 416 && part.sizeBytes > 0) {
    // The server has no more bytes than these. The digest decides.
    answer.destroy();
    part.isDoubtful = true;
    return undefined;
  }
  const refusal = refusalOfStatus(answer) ?? (await beginAnswer(part, answer));
  const failure = refusal ?? (await readAnswer(part, answer, options));
  if (failure !== undefined) answer.destroy();
  return failure;
}

async function readAnswer(
  part: PartialDownload,
  answer: IncomingMessage,
  { progress, roomBytes = () => Number.POSITIVE_INFINITY }: DownloadOptions,
): Promise<DownloadError | undefined> {
  const totalBytes = totalOf(answer, part);
  progress(part.sizeBytes, totalBytes);
  if (totalBytes !== undefined && totalBytes - part.sizeBytes > roomBytes()) return noRoom();
  const pieces = answer.iterator({ destroyOnReturn: true });
  for (;;) {
    const piece = await pieces.next().catch((error: unknown) => codeOf(error) ?? "the connection failed");
    if (typeof piece === "string") {
      return new DownloadError(`the connection broke after ${part.sizeBytes} bytes (${piece})`, { mayPass: true });
    }
    if (piece.done === true) return undefined;
    if (piece.value.length > roomBytes()) return noRoom();
    await append(part, piece.value);
    progress(part.sizeBytes, totalBytes);
  }
}

function headersFor({ sizeBytes, etag, isDoubtful }: PartialDownload): Record<string, string> {
  // No compression: the SHA-256 is of the plain bytes, and kernels are compressed already.
  const headers = { "accept-encoding": "identity", "user-agent": "davit" };
  if (sizeBytes === 0) return headers;
  const range = `bytes=${sizeBytes}-`;
  // Nobody knows the ETag of what an earlier run downloaded. The digest decides.
  if (etag === undefined) return isDoubtful ? { ...headers, range } : headers;
  // A weak ETag does not guarantee equal bytes, so it must not continue a download (RFC 9110, 13.1.5).
  return etag.startsWith("W/") ? headers : { ...headers, range, "if-range": etag };
}

/** Returns why the server refused; undefined if the answer has bytes. */
function refusalOfStatus({ statusCode: status = 0, headers }: IncomingMessage): DownloadError | undefined {
  if (status === 200 || status === 206) return undefined;
  const mayPass = status === 408 || status === 429 || status >= 500;
  const retryAfterMs = Number(headers["retry-after"] ?? 0) * 1_000;
  return new DownloadError(`the server answers ${status}`, {
    mayPass,
    retryAfterMs: Number.isFinite(retryAfterMs) ? retryAfterMs : 0,
  });
}

/** Prepares for the bytes of an answer. Returns why they cannot follow those that are downloaded. */
async function beginAnswer(part: PartialDownload, answer: IncomingMessage): Promise<DownloadError | undefined> {
  const { statusCode, headers } = answer;
  part.isPage = /^text\/html\b/i.test(headers["content-type"] ?? "");
  if (statusCode === 200) {
    await beginAnew(part, headers.etag);
    return undefined;
  }
  const [, start] = contentRange(headers["content-range"]);
  const isSame = part.etag === undefined || headers.etag === undefined || headers.etag === part.etag;
  if (Number(start) === part.sizeBytes && isSame) {
    part.etag ??= headers.etag;
    return undefined;
  }
  await beginAnew(part, undefined);
  return new DownloadError("the server sends another part than davit asked for", { mayPass: true });
}

/** Returns the size that the server announces; undefined without one. */
function totalOf({ statusCode, headers }: IncomingMessage, { sizeBytes }: PartialDownload): number | undefined {
  const [, , ofRange] = contentRange(headers["content-range"]);
  const length = headers["content-length"];
  if (statusCode === 206 && ofRange !== undefined) return Number(ofRange);
  return length === undefined ? undefined : sizeBytes + Number(length);
}

function contentRange(header = ""): readonly (string | undefined)[] {
  return /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(header)?.map((text) => (text === "*" ? undefined : text)) ?? [];
}

function noRoom(): DownloadError {
  return new DownloadError(
    "the assets directory would become larger than --limit assets-max-bytes: remove old files, or raise it",
  );
}

async function beginAnew(part: PartialDownload, etag: string | undefined): Promise<void> {
  await part.file.truncate(0);
  part.sizeBytes = 0;
  part.etag = etag;
  part.isDoubtful = false;
}

async function append(part: PartialDownload, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await part.file.write(bytes, written, undefined, part.sizeBytes + written);
    written += bytesWritten;
  }
  part.sizeBytes += bytes.length;
}

function unreachable(error: unknown): DownloadError {
  if (error instanceof DownloadError) return error;
  return new DownloadError(`the server cannot be reached (${codeOf(error) ?? "no code"})`, { mayPass: true });
}
