/**
 * Memory for what is read past the cache: a buffer for each download, which it keeps to its end. The first 64 have large
 * ones, all others small ones, so that the sum is bounded by the number of downloads.
 */

// As large as a chunk of the cache, and for the same reason.
const largeBytes = 1024 * 1024;
const maxLarge = 64;

/** Small enough that 2,048 of them are 128 MiB. */
const smallBytes = 64 * 1024;

export class ReadBuffers {
  #largeCount = 0;

  /** @param wantedBytes what the download has at most to hold. The caller gives the buffer back. */
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
