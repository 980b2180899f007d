/**
 * Contents of files in memory, in chunks of 1 MiB that begin at multiples of it, up to a given sum.
 *
 * It promises that a chunk holds bytes of the version that it was asked for, since it takes only what was read whole
 * before the file changed; that several who ask for a chunk cause one read; and that its memory never exceeds the limit,
 * chunks in use and chunks being read included. It never waits for room: where none is left it says so, and the caller
 * reads for itself. What was not used for longest goes first.
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

/** A chunk that stays where it is until it is released. */
export interface PinnedChunk {
  readonly bytes: Buffer;
  /** Settles when `bytes` are there; rejects as `readAsset` does. Undefined when they are. */
  readonly loading: Promise<void> | undefined;
}

/**
 * One write of so much takes the kernel some 0.2 ms, beside which the rest of a chunk's way costs nothing; larger ones
 * measured no faster, and would keep other requests waiting (bench/RESULTS.md).
 */
export const chunkBytes = 1024 * 1024;

/** What the memory of a small file is counted in. */
const pageBytes = 4096;

/**
 * A change time tells two contents apart only if the clock that writes it ticked in between: 10 ms at most for the
 * kernel's, 2 s for the coarsest file system. A file is kept once a further change would be seen for certain.
 */
const settleMs = 2_000;

export class AssetCache {
  readonly #options: AssetCacheOptions;
  /** By file; the newest version of each that was asked for. */
  readonly #versions = new Map<string, CachedVersion>();
  /** Chunks that nobody uses, the one unused for longest first. */
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
   * Pins a chunk of the version that is open. Where it is not there yet it is read from this asset's handle, which the
   * caller keeps open until it is.
   * @param index 0 for the first `chunkBytes` of the file.
   * @returns undefined when it is not there and cannot be taken in.
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

  /** Gives a pin back; the bytes must not be used any more. */
  release(pinned: PinnedChunk): void {
    assert(pinned instanceof Chunk && pinned.pins > 0, "a chunk is released as often as it was pinned");
    pinned.pins--;
    if (pinned.pins > 0) return;
    if (pinned.isKept) this.#idle.add(pinned);
    else this.#count(-pinned.memoryBytes);
  }

  /** Undefined when a newer version of the file was seen: this one is not worth its memory. */
  #versionOf(version: FileVersion): CachedVersion | undefined {
    const known = this.#versions.get(version.file);
    if (known === undefined) return { version, chunks: new Map() };
    if (isSame(known.version, version)) return known;
    if (known.version.ctimeNs > version.ctimeNs) return undefined;
    for (const chunk of known.chunks.values()) this.#drop(chunk);
    return { version, chunks: new Map() };
  }

  /** A file that does not fit would drive out all others, and be gone from its beginning when it is asked for again. */
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

  /** @returns memory of that length, that of a chunk which had to go where it fits; undefined when all is in use. */
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

  /** Nobody will find this chunk any more; who has it pinned uses it to the end. */
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
  /** False once it may not be found any more. */
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
