/** Splits chunks of bytes into lines. A chunk may end in the middle of a line or of a character. */

const newline = 0x0a;

interface LineReaderOptions {
  /** A longer line is refused, so that memory has a limit. */
  readonly maxLineBytes: number;
  /** Makes the error for a bad line, of the class that the caller uses. */
  readonly refuse: (detail: string, cause?: unknown) => Error;
}

export class LineReader {
  readonly #options: LineReaderOptions;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  /** The beginning of an unfinished line. */
  #begun: Buffer[] = [];
  #begunBytes = 0;

  constructor(options: LineReaderOptions) {
    this.#options = options;
  }

  /**
   * Returns the lines that a chunk completes, without their newlines.
   * @throws the error of `refuse` for a line that is too long or not UTF-8.
   */
  *push(chunk: Buffer): Iterable<string> {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      this.#take(chunk.subarray(start, end));
      start = end + 1;
      yield this.#end();
    }
    // The rest is copied, because a small slice of a chunk would keep the whole chunk in memory.
    if (start < chunk.length) this.#take(start === 0 ? chunk : Buffer.from(chunk.subarray(start)));
  }

  #take(bytes: Buffer): void {
    this.#begunBytes += bytes.length;
    if (this.#begunBytes > this.#options.maxLineBytes) throw this.#options.refuse("a line is too long");
    this.#begun.push(bytes);
  }

  #end(): string {
    const bytes = this.#begun.length === 1 ? this.#begun[0] : Buffer.concat(this.#begun);
    this.#begun = [];
    this.#begunBytes = 0;
    try {
      return this.#decoder.decode(bytes);
    } catch (error) {
      throw this.#options.refuse("a line is not UTF-8", error);
    }
  }
}
