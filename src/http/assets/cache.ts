/**
 * Contents of files in memory, in chunks of 1 MiB that begin at multiples of 1 MiB, up to a given sum.
 *
 * A chunk has bytes of the requested version only: the cache takes what was read whole before the file changed. Several
 * requests for a chunk cause one read. The memory never exceeds the limit, including chunks in use and chunks being
 * read. The cache never waits for room: if there is none, `pin` returns undefined and the caller reads without it. The
 * least recently used chunk is dropped first.
 */

import type { Clock } from "../../lib/clock.ts";
import { assert } from "../../lib/errors.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { type Asset, type FileVersion, readAsset } from "./file.ts";

export interface AssetCacheOptions {
  /** 0 keeps nothing. */
  readonly limitBytes: number;
  readonly clock: Pick<Clock, "nowMs">;
  readonly metrics: Pick<Metrics, "assetCacheBytes" | "assetCacheHits" | "assetCacheMisses">;
}

/** A chunk that stays in place until it is released. */
export interface PinnedChunk {
  readonly bytes: Buffer;
  /** Settles when `bytes` are there; rejects as `readAsset` does. Undefined when they are there already. */
  readonly loading: Promise<void> | undefined;
}

/**
 * The kernel takes about 0.2 ms for one write of this size, so the other work for a chunk costs little in comparison.
 * Larger chunks measured no faster, and would keep other requests waiting (bench/RESULTS.md).
 */
export const chunkBytes = 1024 * 1024;

/** The unit in which a small file's memory is counted. */
const pageBytes = 4096;

/**
 * Two contents have different change times only if the clock ticked between the writes. The kernel's clock ticks every
 * 10 ms or faster, that of the coarsest file system every 2 s. A file is cached once any further change must show.
 */
const settleMs = 2_000;

export class AssetCache {
  readonly #options: AssetCacheOptions;
  /** By file; the newest version of each file that was requested. */
  readonly #versions = new Map<string, CachedVersion>();
  /** Unused chunks, least recently used first. */
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
   * Pins a chunk of the open version. A missing chunk is read from this asset's handle; the caller keeps the handle
   * open until the chunk is loaded.
   * @param index 0 for the first `chunkBytes` of the file.
   * @returns undefined when the chunk is missing and there is no room for it.
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

  /** The cached version; undefined when a newer one was seen, because an old version is not worth its memory. */
  #versionOf(version: FileVersion): CachedVersion | undefined {
    const known = this.#versions.get(version.file);
    if (known === undefined) return { version, chunks: new Map() };
    if (isSame(known.version, version)) return known;
    if (known.version.ctimeNs > version.ctimeNs) return undefined;
    for (const chunk of known.chunks.values()) this.#drop(chunk);
    return { version, chunks: new Map() };
  }

  /**
   * Refuses a file larger than the cache: it would displace all others, and its first chunks would be gone before the
   * next request.
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

  /** @returns memory of this length, if possible that of a dropped chunk; undefined when all memory is in use. */
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

  /** New requests no longer find this chunk; those that pinned it use it to the end. */
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
    this.#options.metrics.assetCacheBytes.set(this.#heldBytes);
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
  /** False once new requests must not find it. */
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

function isSame(one: FileVersion, other: FileVersion): boolean {
  return one.sizeBytes === other.sizeBytes && one.mtimeNs === other.mtimeNs && one.ctimeNs === other.ctimeNs;
}
