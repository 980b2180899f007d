import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { AssetCache, chunkBytes, type PinnedChunk } from "../../src/http/assets/cache.ts";
import { type Asset, AssetChanged, openAsset } from "../../src/http/assets/file.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { laterClock } from "./asset-server.ts";

const root = mkdtempSync(join(tmpdir(), "davit-asset-cache-"));
const sizes = { small: 10, page: 4097, one: chunkBytes, two: chunkBytes + 1, three: 3 * chunkBytes };
const names = Object.keys(sizes);
const opened: Asset[] = [];

/** A file whose every byte tells its chunk, and which file it is. */
function contentOf(name: string): Buffer {
  const sizeBytes = Object.entries(sizes).find(([known]) => known === name)?.[1] ?? 0;
  const whole = Buffer.alloc(sizeBytes);
  for (let at = 0; at < sizeBytes; at += chunkBytes) whole.fill(names.indexOf(name) * 16 + at / chunkBytes, at);
  return whole;
}

async function open(name: string): Promise<Asset> {
  const asset = await openAsset(root, name);
  if (asset === undefined) throw new Error(`No file ${name}`);
  opened.push(asset);
  return asset;
}

function cacheOf(limitBytes: number, clock: Pick<Clock, "nowMs"> = laterClock): AssetCache {
  return new AssetCache({ limitBytes, clock, metrics: createMetrics("test") });
}

async function pinned(cache: AssetCache, asset: Asset, index: number): Promise<PinnedChunk> {
  const chunk = cache.pin(asset, index);
  if (chunk === undefined) throw new Error("no room");
  await chunk.loading;
  return chunk;
}

/** Pins and releases. @returns true when the chunk was there already. */
async function touch(cache: AssetCache, asset: Asset, index: number): Promise<boolean> {
  const chunk = cache.pin(asset, index);
  if (chunk === undefined) return false;
  const wasThere = chunk.loading === undefined;
  await chunk.loading;
  cache.release(chunk);
  return wasThere;
}

beforeAll(() => {
  for (const name of names) writeFileSync(join(root, name), contentOf(name));
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map(({ handle }) => handle.close()));
});
afterAll(() => rmSync(root, { recursive: true }));

describe("the cache of assets", () => {
  it("reads a chunk once, however many ask for it at a time", async () => {
    const [cache, asset, other] = [cacheOf(4 * chunkBytes), await open("one"), await open("one")];
    const reads = vi.spyOn(asset.handle, "read");
    const otherReads = vi.spyOn(other.handle, "read");
    const chunks = await Promise.all([pinned(cache, asset, 0), pinned(cache, other, 0), pinned(cache, asset, 0)]);
    expect(chunks.every(({ bytes }) => bytes.equals(contentOf("one")))).toBe(true);
    expect(reads).toHaveBeenCalledOnce();
    expect(otherReads).not.toHaveBeenCalled();
  });

  it("counts memory by pages, and gives up what was not used for longest", async () => {
    const cache = cacheOf(3 * chunkBytes);
    const [small, three] = [await open("small"), await open("three")];
    await touch(cache, small, 0);
    expect(cache.heldBytes).toBe(4096);
    await touch(cache, three, 0);
    await touch(cache, three, 1);
    expect(cache.heldBytes).toBe(2 * chunkBytes + 4096);
    await touch(cache, three, 0);
    await touch(cache, three, 2);
    expect(cache.heldBytes).toBe(3 * chunkBytes);
    const kept = [await touch(cache, three, 0), await touch(cache, three, 2), await touch(cache, three, 1)];
    expect(kept).toEqual([true, true, true]);
    expect(await touch(cache, small, 0)).toBe(false);
  });

  it("has no room while everything is in use, and some again afterwards", async () => {
    const [cache, one, three] = [cacheOf(3 * chunkBytes), await open("one"), await open("three")];
    const chunks = [await pinned(cache, three, 0), await pinned(cache, three, 1), await pinned(cache, three, 2)];
    expect(cache.pin(one, 0)).toBeUndefined();
    expect(cache.heldBytes).toBe(3 * chunkBytes);
    cache.release(chunks[1] ?? expect.fail());
    const taken = await pinned(cache, one, 0);
    expect(taken.bytes.equals(contentOf("one"))).toBe(true);
    expect(chunks[0]?.bytes.equals(contentOf("three").subarray(0, chunkBytes))).toBe(true);
  });

  it("takes no file that is larger than all of it, and none at all with 0 bytes", async () => {
    const three = await open("three");
    expect(cacheOf(3 * chunkBytes - 1).pin(three, 0)).toBeUndefined();
    expect(cacheOf(0).pin(await open("small"), 0)).toBeUndefined();
  });

  it("takes no file that changed less than two seconds ago, since a further change might not show", async () => {
    const asset = await open("small");
    const changedAtMs = Number(asset.version.ctimeNs / 1_000_000n);
    expect(cacheOf(chunkBytes, { nowMs: () => changedAtMs + 1_999 }).pin(asset, 0)).toBeUndefined();
    expect(await touch(cacheOf(chunkBytes, { nowMs: () => changedAtMs + 2_000 }), asset, 0)).toBe(false);
    expect(cacheOf(chunkBytes, { nowMs: () => changedAtMs - 3_600_000 }).pin(asset, 0)).toBeUndefined();
  });
});

describe("of a file that changes the cache", () => {
  const path = join(root, "changing");
  let second = 1;
  const write = (content: string) => {
    writeFileSync(path, content);
    utimesSync(path, second, second);
    second++;
  };

  it("has only the newest version, and who uses an older one has it to the end", async () => {
    const cache = cacheOf(4 * chunkBytes);
    write("old");
    const old = await open("changing");
    const chunk = await pinned(cache, old, 0);
    write("new");
    const renewed = await pinned(cache, await open("changing"), 0);
    expect([chunk.bytes.toString(), renewed.bytes.toString()]).toEqual(["old", "new"]);
    expect(cache.heldBytes).toBe(2 * 4096);
    cache.release(chunk);
    expect(cache.heldBytes).toBe(4096);
    expect(cache.pin(old, 0)).toBeUndefined();
  });

  it("keeps nothing that was read after the change", async () => {
    const cache = cacheOf(4 * chunkBytes);
    write("before");
    const before = await open("changing");
    write("after!");
    for (const _ of [1, 2]) {
      const chunk = cache.pin(before, 0) ?? expect.fail();
      await expect(chunk.loading).rejects.toThrow(AssetChanged);
      cache.release(chunk);
    }
    expect(cache.heldBytes).toBe(0);
    expect((await pinned(cache, await open("changing"), 0)).bytes.toString()).toBe("after!");
  });

  it("tells one version from the next by the change time when size and modification time are the same", async () => {
    const cache = cacheOf(4 * chunkBytes);
    write("first");
    await touch(cache, await open("changing"), 0);
    second--;
    write("again");
    expect((await pinned(cache, await open("changing"), 0)).bytes.toString()).toBe("again");
  });
});

describe("whatever is pinned and released in whatever order", () => {
  const step = fc.record({
    name: fc.constantFrom(...names),
    index: fc.nat(2),
    /** How many of those pinned by now are released first, the oldest ones. */
    releases: fc.nat(3),
    isAwaited: fc.boolean(),
  });

  it("the limit holds, and every chunk has its file's bytes", async () => {
    const limits = fc.nat(5).map((chunks) => chunks * chunkBytes + 5000);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), limits, async (steps, limitBytes) => {
        const user = new Chunks(cacheOf(limitBytes));
        for (const { name, index, releases, isAwaited } of steps) {
          await user.release(releases);
          await user.take(name, index, isAwaited);
          expect(user.cache.heldBytes).toBeLessThanOrEqual(limitBytes);
        }
        await user.release(steps.length);
      }),
      { numRuns: 50 },
    );
  });
});

/** Chunks that somebody uses, with what should be in them. */
class Chunks {
  readonly cache: AssetCache;
  readonly #inUse: { readonly chunk: PinnedChunk; readonly expected: Buffer }[] = [];

  constructor(cache: AssetCache) {
    this.cache = cache;
  }

  async take(name: string, index: number, isAwaited: boolean): Promise<void> {
    const expected = contentOf(name).subarray(index * chunkBytes, (index + 1) * chunkBytes);
    if (expected.length === 0) return;
    const chunk = this.cache.pin(await open(name), index);
    if (isAwaited) await chunk?.loading;
    if (chunk !== undefined) this.#inUse.push({ chunk, expected });
  }

  /** Those taken first. */
  async release(count: number): Promise<void> {
    for (const { chunk, expected } of this.#inUse.splice(0, count)) {
      await chunk.loading;
      expect(chunk.bytes.equals(expected)).toBe(true);
      this.cache.release(chunk);
    }
  }
}
