/** Reads the bytes of one answer, piece by piece: from the cache, or from the file where the cache has no room. */

import { type AssetCache, chunkBytes } from "./cache.ts";
import { type Asset, readAsset } from "./file.ts";
import type { ByteRange } from "./preconditions.ts";

/** Bytes to send. They do not change until `release` is called. */
export interface AssetPiece {
  readonly bytes: Buffer;
  readonly release: () => void;
}

interface AssetPiecesOptions {
  readonly cache: AssetCache;
  readonly buffers: ReadBuffers;
}

export class AssetPieces {
  readonly #asset: Asset;
  readonly #options: AssetPiecesOptions;
  readonly #end: number;
  #position: number;
  /** The buffer for reads that bypass the cache. */
  #buffer: Buffer | undefined;

  constructor(asset: Asset, range: ByteRange, options: AssetPiecesOptions) {
    this.#asset = asset;
    this.#options = options;
    this.#position = range.start;
    this.#end = range.end + 1;
  }

  /**
   * Returns the next piece. The caller must have released the previous one.
   * @returns undefined at the end.
   * @throws {AssetChanged} when the file has changed since it was opened.
   */
  async next(): Promise<AssetPiece | undefined> {
    if (this.#position >= this.#end) return undefined;
    const piece = (await this.#kept()) ?? (await this.#read());
    this.#position += piece.bytes.length;
    return piece;
  }

  /** Gives back the buffer. The caller must have released every piece. The asset stays open. */
  close(): void {
    if (this.#buffer !== undefined) this.#options.buffers.giveBack(this.#buffer);
    this.#buffer = undefined;
  }

  async #kept(): Promise<AssetPiece | undefined> {
    const { cache } = this.#options;
    const index = Math.floor(this.#position / chunkBytes);
    const pinned = cache.pin(this.#asset, index);
    if (pinned === undefined) return undefined;
    const release = () => cache.release(pinned);
    try {
      await pinned.loading;
    } catch (error) {
      release();
      throw error;
    }
    const start = index * chunkBytes;
    return { bytes: pinned.bytes.subarray(this.#position - start, this.#end - start), release };
  }

  async #read(): Promise<AssetPiece> {
    const leftBytes = this.#end - this.#position;
    this.#buffer ??= this.#options.buffers.take(leftBytes);
    // Reads only to the end of the chunk, because the cache can have the next chunk.
    const toChunkEnd = chunkBytes - (this.#position % chunkBytes);
    const bytes = this.#buffer.subarray(0, Math.min(leftBytes, toChunkEnd));
    await readAsset(this.#asset, bytes, this.#position);
    return { bytes, release: () => undefined };
  }
}

// As large as a cache chunk, for the reason given at `chunkBytes`.
const largeBytes = 1024 * 1024;
const maxLarge = 64;

/** Small enough that 2,048 of them are 128 MiB. */
const smallBytes = 64 * 1024;

/**
 * Provides memory for reads that bypass the cache. Each download keeps one buffer until it ends. Up to 64 downloads at
 * a time have large buffers, all others have small ones. So the limit on downloads also limits this memory.
 */
export class ReadBuffers {
  #largeCount = 0;

  /**
   * Returns a buffer for a download, of `wantedBytes` at most. The caller must give it back.
   * @param wantedBytes the most that the download has to hold.
   */
  take(wantedBytes: number): Buffer {
    if (wantedBytes <= smallBytes || this.#largeCount >= maxLarge) {
      return Buffer.allocUnsafeSlow(Math.min(wantedBytes, smallBytes));
    }
    this.#largeCount++;
    return Buffer.allocUnsafeSlow(Math.min(wantedBytes, largeBytes));
  }

  giveBack(buffer: Buffer): void {
    if (buffer.length > smallBytes) this.#largeCount--;
  }
}
