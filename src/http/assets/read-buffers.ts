/**
 * Memory for reads past the cache: each download keeps one buffer to its end. The first 64 downloads get large buffers,
 * all others small ones, so the number of downloads bounds the sum.
 */

// The size of a cache chunk, for the same reason.
const largeBytes = 1024 * 1024;
const maxLarge = 64;

/** Small enough that 2,048 of them are 128 MiB. */
const smallBytes = 64 * 1024;

export class ReadBuffers {
  #largeCount = 0;

  /** @param wantedBytes the most that the download has to hold. The caller gives the buffer back. */
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
