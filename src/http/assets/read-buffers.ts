/**
 * Provides memory for reads that bypass the cache. Each download keeps one buffer until it ends. Up to 64 downloads at
 * a time have large buffers, all others have small ones. So the limit on downloads also limits this memory.
 */

// As large as a cache chunk, for the reason given at `chunkBytes`.
const largeBytes = 1024 * 1024;
const maxLarge = 64;

/** Small enough that 2,048 of them are 128 MiB. */
const smallBytes = 64 * 1024;

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
