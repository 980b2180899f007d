/**
 * Caches contents of files in memory, up to a limit. A chunk holds up to 1 MiB, and begins at a multiple of 1 MiB.
 *
 * All bytes of a chunk belong to the requested version: the cache drops a chunk if the file changes during the read.
 * Several requests for a chunk cause one read. The limit includes chunks in use and chunks being read. The cache never
 * waits for room: without room `pin` returns undefined, and the caller reads the file itself. The least recently used
 * chunk is dropped first.
 */

import type { Clock } from "../../lib/clock.ts";
import { assert } from "../../lib/errors.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { type Asset, type FileVersion, isSameVersion, readAsset, settleMs } from "./file.ts";

interface AssetCacheOptions {
  /** 0 keeps nothing. */
  readonly limitBytes: number;
  readonly clock: Pick<Clock, "nowMs">;
  readonly metrics: Pick<Metrics, "assetCacheBytes" | "assetCacheHits" | "assetCacheMisses">;
}

/** A chunk whose memory is not used for anything else until the caller releases it. */
export interface PinnedChunk {
  readonly bytes: Buffer;
  /** Resolves when `bytes` are filled; rejects as `readAsset` does. Undefined if they are already filled. */
  readonly loading: Promise<void> | undefined;
}

/**
 * The kernel takes about 0.2 ms to write a chunk of this size; all other work for a chunk is short in comparison.
 * Larger chunks were no faster, and would delay other requests
 * (docs/internals/decisions/0032-downloads-wait-for-a-place.md).
 */
export const chunkBytes = 1024 * 1024;

/** The memory of a chunk is counted in whole pages. */
const pageBytes = 4096;

export class AssetCache {
  readonly #options: AssetCacheOptions;
  /** By file, the newest version that was requested and has chunks. */
  readonly #versions = new Map<string, CachedVersion>();
  /** Chunks that nobody has pinned, least recently used first. */
  readonly #idle = new Set<Chunk>();
  #heldBytes = 0;

  constructor(options: AssetCacheOptions) {
    this.#options = options;
  }

  /** Memory of all chunks, in use or not. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Pins a chunk of the asset's version. A missing chunk is read from the asset's handle, which the caller keeps open
   * until the chunk is loaded.
   * @param index 0 for the first `chunkBytes` of the file.
   * @returns undefined when the chunk is missing and the cache does not take it.
   */
  pin(asset: Asset, index: number): PinnedChunk | undefined {
    const owner = this.#versionOf(asset.version);
    const chunk = owner?.chunks.get(index);
    if (chunk !== undefined) {
      this.#options.metrics.assetCacheHits.inc();
      this.#idle.delete(chunk);
      chunk.pins++;
      return chunk;
    }
    this.#options.metrics.assetCacheMisses.inc();
    return owner === undefined || !this.#mayKeep(asset.version) ? undefined : this.#load(owner, asset, index);
  }

  /** Releases a pinned chunk; the caller must not use its bytes any more. */
  release(pinned: PinnedChunk): void {
    assert(pinned instanceof Chunk && pinned.pins > 0, "a chunk is released as often as it was pinned");
    pinned.pins--;
    if (pinned.pins > 0) return;
    if (pinned.isKept) this.#idle.add(pinned);
    else this.#count(-pinned.memoryBytes);
  }

  /**
   * Finds or makes the entry of a version, and drops chunks of an older version. Returns undefined if the cache has
   * seen a newer version: an old version is not worth its memory.
   */
  #versionOf(version: FileVersion): CachedVersion | undefined {
    const known = this.#versions.get(version.file);
    if (known === undefined) return { version, chunks: new Map() };
    if (isSameVersion(known.version, version)) return known;
    if (known.version.ctimeNs > version.ctimeNs) return undefined;
    for (const chunk of known.chunks.values()) this.#drop(chunk);
    return { version, chunks: new Map() };
  }

  /**
   * True if a version may be cached. A file larger than the cache would displace all others, and its first chunks would
   * be gone before the next request. A file that has changed within `settleMs` could change again unnoticed.
   */
  #mayKeep({ sizeBytes, ctimeNs }: FileVersion): boolean {
    const { limitBytes, clock } = this.#options;
    return sizeBytes <= limitBytes && clock.nowMs() - Number(ctimeNs / 1_000_000n) >= settleMs;
  }

  #load(owner: CachedVersion, asset: Asset, index: number): Chunk | undefined {
    const position = index * chunkBytes;
    const bytes = this.#makeRoom(Math.min(chunkBytes, owner.version.sizeBytes - position));
    if (bytes === undefined) return undefined;
    const chunk = new Chunk(owner, index, bytes);
    this.#versions.set(owner.version.file, owner);
    owner.chunks.set(index, chunk);
    chunk.loading = this.#read(chunk, asset, position);
    return chunk;
  }

  async #read(chunk: Chunk, asset: Asset, position: number): Promise<void> {
    try {
      await readAsset(asset, chunk.bytes, position);
      chunk.loading = undefined;
    } catch (error) {
      this.#drop(chunk);
      throw error;
    }
  }

  /**
   * Drops unused chunks until there is room.
   * @returns a buffer of this length, if possible that of a dropped chunk; undefined when all memory is in use.
   */
  #makeRoom(lengthBytes: number): Buffer | undefined {
    const memoryBytes = memoryOf(lengthBytes);
    let free: Buffer | undefined;
    while (this.#heldBytes + memoryBytes > this.#options.limitBytes) {
      const [oldest] = this.#idle;
      if (oldest === undefined) return undefined;
      this.#drop(oldest);
      if (oldest.bytes.length === lengthBytes) free = oldest.bytes;
    }
    this.#count(memoryBytes);
    return free ?? Buffer.allocUnsafeSlow(lengthBytes);
  }

  /** Removes a chunk: new requests no longer find it. Requests that have pinned it can use it until they release it. */
  #drop(chunk: Chunk): void {
    if (!chunk.isKept) return;
    chunk.isKept = false;
    const { version, chunks } = chunk.owner;
    chunks.delete(chunk.index);
    if (chunks.size === 0 && this.#versions.get(version.file) === chunk.owner) this.#versions.delete(version.file);
    if (this.#idle.delete(chunk)) this.#count(-chunk.memoryBytes);
  }

  #count(bytes: number): void {
    this.#heldBytes += bytes;
    this.#options.metrics.assetCacheBytes.inc(bytes);
  }
}

interface CachedVersion {
  readonly version: FileVersion;
  readonly chunks: Map<number, Chunk>;
}

class Chunk implements PinnedChunk {
  readonly owner: CachedVersion;
  readonly index: number;
  readonly bytes: Buffer;
  loading: Promise<void> | undefined;
  pins = 1;
  /** False after the chunk was dropped: new requests no longer find it. */
  isKept = true;

  constructor(owner: CachedVersion, index: number, bytes: Buffer) {
    this.owner = owner;
    this.index = index;
    this.bytes = bytes;
  }

  get memoryBytes(): number {
    return memoryOf(this.bytes.length);
  }
}

function memoryOf(lengthBytes: number): number {
  return Math.ceil(lengthBytes / pageBytes) * pageBytes;
}
