/**
 * `/assets/*`: kernels, initrds and other files of the assets directory.
 *
 * Each answer has a true length, and the bytes of one version of the file. If the file changes while it is sent, davit
 * cuts the connection. So no client takes a short or mixed answer for a whole one. Each request checks the file again,
 * so a change shows in the next answer. davit never lists a directory, follows a link out of the root, or opens
 * anything except a regular file. It uses neither chunked encoding nor compression, because no firmware asks for them.
 */

import type { IncomingMessage } from "node:http";
import { extname } from "node:path";
import type { Clock } from "../../lib/clock.ts";
import { codeOf } from "../../lib/errors.ts";
import { Places } from "../../lib/fair-queue.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import type { PermitDesk } from "../../model/permits/permit-desk.ts";
import { claimParameter } from "../../render/boot/claimed-file.ts";
import type { ScriptAsset } from "../../render/boot/named-assets.ts";
import { Clients, type Holder } from "../client-shares.ts";
import { maxOpenAssets, maxOpening } from "../connection-limit.ts";
import { RequestError } from "../errors.ts";
import type { Answer, Exchange } from "../exchange.ts";
import type { Route } from "../route-table.ts";
import { AssetCache } from "./cache.ts";
import { type AssetDigests, wantedDigest } from "./digests.ts";
import { type Asset, AssetChanged, decodedPath, hasDirectory, openAsset } from "./file.ts";
import { AssetPieces, ReadBuffers } from "./pieces.ts";
import { type ByteRange, isUnchanged, selectRange } from "./preconditions.ts";
import { AssetStreams, sendPieces } from "./streams.ts";

export interface AssetsOptions {
  /** The assets directory; undefined: every asset is 404. */
  readonly root: string | undefined;
  /**
   * True to serve files in directories below `root` whose names begin with a dot, such as `.treeinfo`, except the usual
   * names of credentials. Default: false.
   */
  readonly serveDotfiles?: boolean;
  /** Memory for frequently requested assets; 0: none. */
  readonly cacheBytes: number;
  readonly digests: AssetDigests;
  /** The names that Profiles list. Under them davit sends only the listed files, and machines wait for these. */
  readonly wanted?: ListedAssets | undefined;
  readonly clock: Pick<Clock, "nowMs" | "sleep">;
  readonly log: Pick<Log, "warn">;
  readonly metrics: Pick<Metrics, "assetStreams" | "assetCacheBytes" | "assetCacheHits" | "assetCacheMisses">;
  /** Names the client of a request, for limits by client. */
  readonly clients?: Clients;
  /** The most open files of assets. All but a few are for downloads; any further download waits. */
  readonly maxOpen?: number | undefined;
  /** The most downloads at one time, in place of the number that `maxOpen` allows. */
  readonly maxStreams?: number;
  /** Takes the downloads of whole files whose URL names a claim. */
  readonly desk?: Pick<PermitDesk, "report"> | undefined;
  /** How long a request waits if too many downloads run. Then davit answers 503. */
  readonly maxWaitMs?: number;
}

interface ListedAssets {
  /** True for a name that a Profile lists. */
  lists(name: string): boolean;
  /** True if a file with this SHA-256 may be sent under a name. */
  accepts(name: string, sha256: string): boolean;
}

const nothingListed: ListedAssets = { lists: () => false, accepts: () => true };

export interface AssetRoute extends Route {
  readonly answer: (exchange: Exchange) => Promise<Answer | undefined>;
  /** See `ServedFiles`. It reads no file except to check a digest. */
  readonly firstMissing: (assets: readonly ScriptAsset[]) => Promise<string | undefined>;
  readonly end: () => void;
}

/** Only this much of the path of a missing asset is shown. */
const maxShownPath = 128;

/** How often davit opens a file that changes before its first bytes are sent. Then davit gives up and answers 503. */
const maxLooks = 3;

/** GRUB waits 30 s for the head of an answer, and does not retry after a 503. */
const defaultMaxWaitMs = 20_000;

const prefix = "/assets/";

const typesByEnding: ReadonlyMap<string, string> = new Map([
  // Some UEFI firmware loads over HTTP only what has the type of a loader or of a disk (UEFI 2.10, section 24.7.1).
  [".efi", "application/efi"],
  [".iso", "application/vnd.efi-iso"],
  [".img", "application/vnd.efi-img"],
  ...[".json", ".ign"].map((ending) => [ending, "application/json"] as const),
  ...[".txt", ".ipxe", ".cfg", ".yaml", ".asc"].map((ending) => [ending, "text/plain; charset=utf-8"] as const),
]);

/** The route of assets. */
export function assetRoute(options: AssetsOptions): AssetRoute {
  const {
    root,
    serveDotfiles = false,
    cacheBytes: limitBytes,
    digests,
    wanted = nothingListed,
    clock,
    log,
    metrics,
    maxOpen = maxOpenAssets,
    clients = new Clients(),
    desk,
    maxWaitMs = defaultMaxWaitMs,
  } = options;
  const opening = Math.min(maxOpening, Math.ceil(maxOpen / 4));
  const { maxStreams = maxOpen - opening } = options;
  const streams = new AssetStreams({ limit: maxStreams, maxWaitMs, clock, running: metrics.assetStreams });
  const sending: DownloadContext = {
    openings: new Places(opening),
    digests,
    wanted,
    cache: new AssetCache({ limitBytes, clock, metrics }),
    buffers: new ReadBuffers(),
    clients,
    serveDotfiles,
    log,
    desk,
    hasPlace: true,
  };
  const answerInPlace = async (directory: string, client: Holder, exchange: Exchange) => {
    try {
      return await answer(directory, sending, exchange);
    } finally {
      streams.leave(client);
    }
  };
  return {
    url: `${prefix}*`,
    answer: async (asked) => {
      const exchange = asMeant(asked);
      // The route matched the decoded path. If the path as sent spells the prefix with escapes, the prefix cannot be
      // cut off, so the answer is 404.
      if (root === undefined || !exchange.path.startsWith(prefix)) throw new RequestError("notFound");
      const client = clients.ofRequest(exchange.request);
      if (streams.tryEnter(client)) return await answerInPlace(root, client, exchange);
      try {
        return await answer(root, { ...sending, hasPlace: false }, exchange);
      } catch (error) {
        if (error !== needsPlace) throw error;
      }
      await streams.enter(client, exchange.response);
      return await answerInPlace(root, client, exchange);
    },
    firstMissing: async (assets) => {
      for (const asset of assets) if (!(await isServed(root, asset, sending))) return shownPath(asset);
      return undefined;
    },
    end: () => streams.end(),
  };
}

/** What all downloads share. */
interface DownloadContext {
  /**
   * The assets that are opened, checked or closed. Without this limit, thousands of requests at once would open all
   * their files before the first of them waits for a place among the downloads.
   */
  readonly openings: Places;
  readonly digests: AssetDigests;
  readonly wanted: ListedAssets;
  readonly cache: AssetCache;
  readonly buffers: ReadBuffers;
  readonly clients: Clients;
  readonly serveDotfiles: boolean;
  readonly log: AssetsOptions["log"];
  readonly desk: AssetsOptions["desk"];
  /** False for a request that has no place among the downloads. It may get only an answer that reads no file. */
  readonly hasPlace: boolean;
}

/** Thrown for a request without a place that needs one: its answer has a body, or an unknown digest. */
const needsPlace = new RequestError("overloaded");

async function answer(root: string, sending: DownloadContext, exchange: Exchange): Promise<Answer | undefined> {
  return await withUnchanged(sending, (once) => answerOnce(root, once, exchange));
}

/** Opens and uses an asset. Repeats this if the asset is written meanwhile. @throws {RequestError} changing. */
async function withUnchanged<Result>(
  sending: DownloadContext,
  use: (once: OneDownload) => Promise<Result>,
): Promise<Result> {
  for (let look = 0; look < maxLooks; look++) {
    const opened = await sending.openings.hold([]);
    try {
      return await use({ ...sending, opened });
    } catch (error) {
      // Thrown only before anything was sent.
      if (!(error instanceof AssetChanged)) throw error;
    } finally {
      opened();
    }
  }
  throw new RequestError("changing");
}

interface OneDownload extends DownloadContext {
  /** Lets the next request open its asset. Idempotent. */
  readonly opened: () => void;
}

async function answerOnce(root: string, sending: OneDownload, exchange: Exchange): Promise<Answer | undefined> {
  return await withChecked(root, exchange, sending, (asset) => answerWith(asset, sending, exchange));
}

/** The path and the query of a request, as sent. */
type AssetRequest = Pick<Exchange, "path" | "rawQuery">;

/** Opens an asset, checks its digest, and uses it. */
async function withChecked<Result>(
  root: string,
  request: AssetRequest,
  sending: OneDownload,
  use: (asset: Asset) => Promise<Result>,
): Promise<Result> {
  const { wanted, digests, hasPlace } = sending;
  const digest = wantedDigest(request.rawQuery);
  const asset = await openOrRefuse(root, request.path.slice(prefix.length), sending);
  try {
    const name = decodedPath(request.path.slice(prefix.length));
    const isChecked = digest !== undefined || wanted.lists(name);
    if (isChecked && !hasPlace && !digests.knows(asset)) throw needsPlace;
    if (digest !== undefined) await checkDigest(asset, (sha256) => sha256 === digest, sending, request);
    else if (wanted.lists(name)) await checkDigest(asset, (sha256) => wanted.accepts(name, sha256), sending, request);
    return await use(asset);
  } finally {
    await asset.handle.close();
  }
}

/**
 * True if davit would send a file now, or if the location is that of a directory and may be.
 * @throws {RequestError} overloaded.
 */
async function isServed(root: string | undefined, named: ScriptAsset, sending: DownloadContext): Promise<boolean> {
  if (root === undefined) return false;
  const [path = "", ...query] = named.location.split("?");
  try {
    if (named.mayBeDirectory && (await hasDirectory(root, path.slice(prefix.length)))) return true;
    const request = { path, rawQuery: query.join("?") };
    return await withUnchanged(sending, (once) => withChecked(root, request, once, async () => true));
  } catch (error) {
    if (error instanceof RequestError && error.reason === "overloaded") throw error;
    // A URIError is a malformed escape, which the listener answers with 400.
    const isKnown = error instanceof RequestError || error instanceof URIError;
    if (!isKnown) sending.log.warn({ path, code: codeOf(error) }, "asset cannot be read, so it counts as missing");
    return false;
  }
}

/** Returns the path of an asset without its query, safe for a script of GRUB and for a terminal. */
function shownPath({ location }: ScriptAsset): string {
  const path = location.replace(/\?.*$/s, "").slice(0, maxShownPath).toWellFormed();
  return path.replaceAll(/[^\w%+,./:=@~-]/gu, (letter) => Buffer.from(letter).toString("hex").replaceAll(/../g, "%$&"));
}

/** Checks an asset's digest. A request that waits for it delays no other opening. */
async function checkDigest(
  asset: Asset,
  accepts: (sha256: string) => boolean,
  { digests, opened }: OneDownload,
  { path }: AssetRequest,
): Promise<void> {
  if (!digests.knows(asset)) opened();
  await digests.check(asset, accepts, path);
}

async function openOrRefuse(root: string, path: string, { wanted, serveDotfiles }: DownloadContext): Promise<Asset> {
  try {
    const asset = await openAsset(root, path, serveDotfiles);
    if (asset !== undefined) return asset;
  } catch (error) {
    const code = codeOf(error);
    if (code === "EMFILE" || code === "ENFILE") throw new RequestError("overloaded");
    throw error;
  }
  throw new RequestError(wanted.lists(decodedPath(path)) ? "unfetched" : "notFound");
}

/** @throws {AssetChanged} when the file was written before anything was sent. */
async function answerWith(asset: Asset, sending: OneDownload, exchange: Exchange): Promise<Answer | undefined> {
  const { request, path } = exchange;
  const validators = ["Cache-Control", "no-cache", "Etag", asset.etag, "Last-Modified", asset.modified];
  if (isUnchanged(request.headers, asset)) return { status: 304, headers: validators };
  const { status, range, headers } = chooseRange(asset, request);
  const type = typesByEnding.get(extname(path).toLowerCase()) ?? "application/octet-stream";
  const byteLength = range.end - range.start + 1;
  const head = {
    status,
    headers: ["Content-Type", type, ...validators, ...headers, "Accept-Ranges", "bytes"],
    byteLength,
  };
  if (request.method === "HEAD" || byteLength === 0) return { ...head, body: "" };
  if (!sending.hasPlace) throw needsPlace;
  sending.opened();
  const pieces = new AssetPieces(asset, range, sending);
  try {
    const isSent = await sendBody(head, pieces, sending, exchange);
    if (isSent && byteLength === asset.version.sizeBytes) noteDownload(sending, exchange);
  } finally {
    pieces.close();
  }
}

/**
 * Reports that an install began if the URL of a whole file names a claim. It does so once the client's kernel has the
 * file: until then the client may be gone. Without an answer of the ledger, the script is repeated until its time is
 * over.
 */
function noteDownload({ desk, clients }: DownloadContext, { request, response, rawQuery }: Exchange): void {
  const claim = desk && new URLSearchParams(rawQuery).get(claimParameter);
  if (desk === undefined || !claim) return;
  const report = () => void desk.report(claim, { state: "installing" }, clients.addressOf(request));
  if (response.writableFinished) report();
  else response.once("finish", report);
}

/**
 * Returns the request that GRUB means. A GRUB that checks signatures appends `.sig` to the whole URL, so to the claim
 * in its query.
 */
function asMeant(exchange: Exchange): Exchange {
  const isOfSignature = signatureAfterClaim.test(exchange.rawQuery);
  return isOfSignature ? { ...exchange, path: `${exchange.path}.sig`, rawQuery: "" } : exchange;
}

const signatureAfterClaim = new RegExp(`(?:^|&)${claimParameter}=[\\w-]+\\.sig$`);

type AssetHead = Pick<Answer, "status" | "headers">;

/**
 * Returns the bytes to send, with the status and the headers for them. An empty file has the range 0 to -1.
 * @throws {RequestError} rangeNotSatisfiable, when the file has none of the requested bytes.
 */
function chooseRange(asset: Asset, request: IncomingMessage): AssetHead & { readonly range: ByteRange } {
  const { sizeBytes } = asset.version;
  const selection = selectRange(request.headers, sizeBytes, asset);
  switch (selection.kind) {
    case "whole":
      return { status: 200, headers: [], range: { start: 0, end: sizeBytes - 1 } };
    case "none":
      throw new RequestError("rangeNotSatisfiable", { "content-range": `bytes */${sizeBytes}` });
    case "part": {
      const { range } = selection;
      return { status: 206, headers: ["Content-Range", `bytes ${range.start}-${range.end}/${sizeBytes}`], range };
    }
  }
}

/**
 * Sends the head, then the body as it is read. An error before the head is thrown. A later error is logged and cuts the
 * connection.
 * @param byteLength of the whole body.
 * @returns true if everything was sent.
 */
async function sendBody(
  { status, headers, byteLength }: AssetHead & { readonly byteLength: number },
  pieces: AssetPieces,
  { log }: DownloadContext,
  { response, path }: Exchange,
): Promise<boolean> {
  const first = await pieces.next();
  if (first === undefined) throw new RangeError("An answer with a body has a piece");
  try {
    response.writeOrdered(status, [...headers, "Content-Length", String(byteLength)]);
    return await sendPieces(response, first, pieces);
  } catch (error) {
    if (error instanceof AssetChanged) log.warn({ path }, "asset changed while it was sent, download cut");
    else log.warn({ path, code: codeOf(error) }, "asset cannot be read, download cut");
    return false;
  }
}
