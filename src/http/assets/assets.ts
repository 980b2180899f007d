/**
 * `/assets/*`: kernels, initrds and other files of the assets directory.
 *
 * Each answer has a true length and the bytes of one version of the file. If the file is written or shrinks while it is
 * sent, the connection ends: a short or mixed answer never looks whole. Each request checks the file, so a change shows
 * at once. It never lists a directory, follows a link out of the root, or opens anything but a regular file. It never
 * sends chunks and never compresses, because no firmware asks for that.
 */

import type { OutgoingHttpHeaders } from "node:http";
import { extname } from "node:path";
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "../../lib/clock.ts";
import { codeOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { Clients } from "../client-shares.ts";
import { RequestError } from "../errors.ts";
import { pathOf } from "../server.ts";
import { AssetCache } from "./cache.ts";
import { type Asset, AssetChanged, openAsset } from "./file.ts";
import { AssetPieces } from "./pieces.ts";
import { type ByteRange, isUnchanged, selectRange } from "./preconditions.ts";
import { ReadBuffers } from "./read-buffers.ts";
import { AssetStreams, sendPieces } from "./streams.ts";

export interface AssetsOptions {
  /** The assets directory; undefined: every asset is 404. */
  readonly root: string | undefined;
  /** Memory for frequently requested assets; 0: none. */
  readonly cacheBytes: number;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Pick<Log, "warn">;
  readonly metrics: Pick<Metrics, "assetStreams" | "assetCacheBytes" | "assetCacheHits" | "assetCacheMisses">;
  /** The most downloads at one time; further ones are refused with a request to retry. */
  /** Returns the client of a request, for limits by client. */
  readonly clients?: Clients;
  readonly maxStreams?: number;
}

/**
 * Each has 5 Mbit/s of a 10 Gbit/s link, so that 64 MiB take two minutes; more at once would slow all of them. Outside
 * the cache they hold 188 MiB at most: 64 large read buffers, and small ones.
 */
const maxAssetStreams = 2048;

/** A file that was written between two checks is checked again. A file that is written all the time is not sent. */
const maxLooks = 3;

const prefix = "/assets/";

const textTypes: ReadonlyMap<string, string> = new Map([
  ...[".json", ".ign"].map((ending) => [ending, "application/json"] as const),
  ...[".txt", ".ipxe", ".cfg", ".yaml", ".asc"].map((ending) => [ending, "text/plain; charset=utf-8"] as const),
]);

export const assets: FastifyPluginAsync<AssetsOptions> = async (app, options) => {
  const {
    root,
    cacheBytes: limitBytes,
    clock,
    log,
    metrics,
    maxStreams = maxAssetStreams,
    clients = new Clients(),
  } = options;
  const sending: DownloadContext = {
    cache: new AssetCache({ limitBytes, clock, metrics }),
    buffers: new ReadBuffers(),
    streams: new AssetStreams(maxStreams, metrics.assetStreams),
    clients,
    log,
  };
  app.route({
    method: ["GET", "HEAD"],
    url: `${prefix}*`,
    handler: async (request, reply) => {
      if (root === undefined) throw new RequestError("notFound");
      await turnOf(reply);
      return await answer(root, sending, request, reply);
    },
  });
};

/** What all downloads share. */
interface DownloadContext {
  readonly cache: AssetCache;
  readonly buffers: ReadBuffers;
  readonly streams: AssetStreams;
  readonly clients: Clients;
  readonly log: AssetsOptions["log"];
}

/**
 * Resolves when the answers to the client's earlier requests are out. If the client disconnects first, this never
 * settles: nothing is held for the request until then.
 */
async function turnOf({ raw }: FastifyReply): Promise<void> {
  if (raw.socket === null) await new Promise((resolve) => raw.once("socket", resolve));
}

async function answer(root: string, sending: DownloadContext, request: FastifyRequest, reply: FastifyReply) {
  for (let look = 0; look < maxLooks; look++) {
    const asset = await openOrRefuse(root, pathOf(request).slice(prefix.length));
    try {
      return await answerWith(asset, sending, request, reply);
    } catch (error) {
      // This is thrown only while nothing was sent.
      if (!(error instanceof AssetChanged)) throw error;
    } finally {
      await asset.handle.close();
    }
  }
  throw new RequestError("changing");
}

async function openOrRefuse(root: string, path: string): Promise<Asset> {
  try {
    const asset = await openAsset(root, path);
    if (asset !== undefined) return asset;
  } catch (error) {
    const code = codeOf(error);
    if (code === "EMFILE" || code === "ENFILE") throw new RequestError("overloaded");
    throw error;
  }
  throw new RequestError("notFound");
}

/** @throws {AssetChanged} when the file was written before anything was sent. */
async function answerWith(asset: Asset, sending: DownloadContext, request: FastifyRequest, reply: FastifyReply) {
  const validators = { "cache-control": "no-cache", etag: asset.etag, "last-modified": asset.modified };
  if (isUnchanged(request.headers, asset)) return reply.code(304).headers(validators).send();
  const { status, range, headers } = chooseRange(asset, request);
  const lengthBytes = range.end - range.start + 1;
  const head = {
    status,
    headers: {
      "content-type": textTypes.get(extname(pathOf(request)).toLowerCase()) ?? "application/octet-stream",
      ...validators,
      ...headers,
      "accept-ranges": "bytes",
      "content-length": lengthBytes,
    },
  };
  if (request.method === "HEAD" || lengthBytes === 0) return reply.code(status).headers(head.headers).send();
  const client = sending.clients.ofRequest(request.raw);
  if (!sending.streams.enter(client)) throw new RequestError("overloaded");
  const pieces = new AssetPieces(asset, range, sending);
  try {
    return await sendBody(head, pieces, sending, reply);
  } finally {
    pieces.close();
    sending.streams.leave(client);
  }
}

interface AssetHead {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
}

/**
 * The requested bytes and the matching status. An empty file has the range 0 to -1.
 * @throws {RequestError} when the request asks for bytes beyond the file.
 */
function chooseRange(asset: Asset, request: FastifyRequest): AssetHead & { readonly range: ByteRange } {
  const { sizeBytes } = asset.version;
  const selection = selectRange(request.headers, sizeBytes, asset);
  switch (selection.kind) {
    case "whole":
      return { status: 200, headers: {}, range: { start: 0, end: sizeBytes - 1 } };
    case "none":
      throw new RequestError("rangeNotSatisfiable", { "content-range": `bytes */${sizeBytes}` });
    case "part": {
      const { range } = selection;
      return { status: 206, headers: { "content-range": `bytes ${range.start}-${range.end}/${sizeBytes}` }, range };
    }
  }
}

/** Bypasses Fastify's reply, whose streams cost more than the bytes. */
async function sendBody(
  { status, headers }: AssetHead,
  pieces: AssetPieces,
  { log }: DownloadContext,
  reply: FastifyReply,
) {
  const first = await pieces.next();
  if (first === undefined) throw new RangeError("An answer with a body has a piece");
  reply.hijack();
  const { raw } = reply;
  try {
    raw.writeHead(status, headers);
    await sendPieces(raw, first, pieces);
  } catch (error) {
    const path = pathOf(reply.request);
    if (error instanceof AssetChanged) log.warn({ path }, "asset changed while it was sent, download cut");
    else log.warn({ path, code: codeOf(error) }, "asset cannot be read, download cut");
  }
  return reply;
}
