/**
 * `/assets/*`: kernels, initrds and whatever else lies in the assets directory.
 *
 * It promises a length that is true, from the same open file as the bytes: a file that shrinks meanwhile ends the
 * connection, never a short answer that looks whole. It never lists a directory, never follows a link out of the root,
 * never opens what is no regular file, never sends chunks and never compresses: no firmware asks for it.
 */

import { extname } from "node:path";
import { Readable } from "node:stream";
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import type { Metrics } from "../lib/metrics.ts";
import { type Asset, openAsset } from "./asset-file.ts";
import { RequestError } from "./errors.ts";
import { type ByteRange, isUnchanged, selectRange } from "./preconditions.ts";
import { pathOf } from "./server.ts";

export interface AssetsOptions {
  /** The assets directory; undefined: every asset is 404. */
  readonly root: string | undefined;
  readonly metrics: Pick<Metrics, "assetStreams">;
  /** Downloads at one time; the next one is told to come again. */
  readonly maxStreams?: number;
}

/**
 * Each download holds up to two chunks, one being read and one being sent: 512 take 128 MiB, and share a 10 Gbit/s link
 * at 20 Mbit/s each. More at once only makes all of them slower.
 */
const maxAssetStreams = 512;
/** Large enough that a disk read costs little, small enough for the sum above. */
const chunkBytes = 128 * 1024;

const prefix = "/assets/";

const textTypes: ReadonlyMap<string, string> = new Map([
  ...[".json", ".ign"].map((ending) => [ending, "application/json"] as const),
  ...[".txt", ".ipxe", ".cfg", ".yaml", ".asc"].map((ending) => [ending, "text/plain; charset=utf-8"] as const),
]);

export const assets: FastifyPluginAsync<AssetsOptions> = async (
  app,
  { root, metrics, maxStreams = maxAssetStreams },
) => {
  const streams = new Slots(maxStreams, (count) => metrics.assetStreams.set(count));
  app.route({
    method: ["GET", "HEAD"],
    url: `${prefix}*`,
    handler: async (request, reply) => {
      const asset = root === undefined ? undefined : await openAsset(root, pathOf(request).slice(prefix.length));
      if (asset === undefined) throw new RequestError("notFound");
      return await sendAsset(asset, streams, request, reply);
    },
  });
};

/** Answers with an open asset and sees to it that it is closed. */
async function sendAsset(asset: Asset, streams: Slots, request: FastifyRequest, reply: FastifyReply) {
  let isStreaming = false;
  try {
    reply.headers({ "cache-control": "no-cache", etag: asset.etag, "last-modified": asset.modified });
    if (isUnchanged(request.headers, asset)) return reply.code(304).send();
    const range = chooseRange(asset, request, reply);
    const lengthBytes = range.end - range.start + 1;
    const type = textTypes.get(extname(pathOf(request)).toLowerCase()) ?? "application/octet-stream";
    reply.headers({ "content-type": type, "accept-ranges": "bytes", "content-length": lengthBytes });
    if (request.method === "HEAD") return reply.send();
    if (!streams.take()) throw new RequestError("overloaded");
    isStreaming = true;
    return reply.send(streamOf(asset, range, streams));
  } finally {
    if (!isStreaming) await asset.handle.close();
  }
}

/**
 * The bytes that the request asks for, and the status that says so. An empty file has the range 0 to -1.
 * @throws {RequestError} when it asks for bytes that are not there.
 */
function chooseRange(asset: Asset, request: FastifyRequest, reply: FastifyReply): ByteRange {
  const { sizeBytes } = asset;
  const selection = selectRange(request.headers, sizeBytes, asset);
  switch (selection.kind) {
    case "whole":
      return { start: 0, end: sizeBytes - 1 };
    case "none":
      throw new RequestError("rangeNotSatisfiable", { "content-range": `bytes */${sizeBytes}` });
    case "part": {
      const { start, end } = selection.range;
      reply.code(206).header("content-range", `bytes ${start}-${end}/${sizeBytes}`);
      return selection.range;
    }
  }
}

/** A stream over part of an asset; it closes the asset and gives its slot back, however it ends. */
function streamOf({ handle }: Asset, range: ByteRange, streams: Slots): Readable {
  const stream = Readable.from(readRange(handle, range), { objectMode: false, highWaterMark: chunkBytes });
  stream.once("close", () => {
    streams.giveBack();
    // Nothing was written, so a failing close loses nothing.
    handle.close().catch(() => undefined);
  });
  return stream;
}

async function* readRange(handle: Asset["handle"], { start, end }: ByteRange): AsyncGenerator<Buffer> {
  for (let position = start; position <= end; ) {
    const length = Math.min(chunkBytes, end - position + 1);
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(length), 0, length, position);
    if (bytesRead === 0) throw new Error("asset shrank while it was sent");
    yield buffer.subarray(0, bytesRead);
    position += bytesRead;
  }
}

/** A bounded number of something. */
class Slots {
  readonly #limit: number;
  readonly #report: (taken: number) => void;
  #taken = 0;

  constructor(limit: number, report: (taken: number) => void) {
    this.#limit = limit;
    this.#report = report;
  }

  /** @returns false when all are taken. */
  take(): boolean {
    if (this.#taken >= this.#limit) return false;
    this.#report(++this.#taken);
    return true;
  }

  giveBack(): void {
    this.#report(--this.#taken);
  }
}
