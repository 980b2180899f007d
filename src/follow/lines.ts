/** From bytes to lines, however the bytes were cut: a chunk may end in the middle of a line, or of a character. */

import { FollowError } from "./follow-error.ts";

/**
 * A document holds at most a few templates of 1 MiB each, and JSON within JSON makes six characters of one at worst;
 * a line beyond this is not the store's.
 */
const presetMaxLineBytes = 64 * 1024 * 1024;

const newline = 0x0a;

export class LineReader {
  readonly #maxLineBytes: number;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  /** What came of a line that has not ended. */
  #begun: Buffer[] = [];
  #begunBytes = 0;

  constructor({ maxLineBytes = presetMaxLineBytes }: { readonly maxLineBytes?: number } = {}) {
    this.#maxLineBytes = maxLineBytes;
  }

  /**
   * The lines that a chunk completes, without their newlines.
   * @throws {FollowError} protocol, for a line that is too long or not UTF-8.
   */
  *push(chunk: Buffer): Iterable<string> {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      this.#take(chunk.subarray(start, end));
      start = end + 1;
      yield this.#end();
    }
    // Copied: the rest may be a small part of a chunk that would be kept for it.
    if (start < chunk.length) this.#take(start === 0 ? chunk : Buffer.from(chunk.subarray(start)));
  }

  /** True when nothing of a line is left over. */
  get isBetweenLines(): boolean {
    return this.#begunBytes === 0;
  }

  #take(bytes: Buffer): void {
    this.#begunBytes += bytes.length;
    if (this.#begunBytes > this.#maxLineBytes) throw new FollowError("protocol", "a line is too long");
    this.#begun.push(bytes);
  }

  #end(): string {
    const bytes = this.#begun.length === 1 ? this.#begun[0] : Buffer.concat(this.#begun);
    this.#begun = [];
    this.#begunBytes = 0;
    try {
      return this.#decoder.decode(bytes);
    } catch (error) {
      throw new FollowError("protocol", "a line is not UTF-8", { cause: error });
    }
  }
}
