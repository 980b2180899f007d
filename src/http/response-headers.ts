/**
 * The response class of every listener. It writes header names in Title-Case, Content-Type first and Content-Length
 * last.
 *
 * GRUB needs both (GRUB 2.06 grub-core/net/http.c; measured with Debian 12). It looks for `Content-Length: ` in exactly
 * this spelling; without it, GRUB waits 68 s for each file. On an error status GRUB skips the first header line, so
 * Content-Length must not be first. Node adds Date and Connection after these headers.
 */

import { type IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from "node:http";

type GivenHeaders = OutgoingHttpHeaders | OutgoingHttpHeader[];

export class WireResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** The Content-Length that was written; undefined before the head is written, or if the head has none. */
  announcedBytes: number | undefined;
  /** How many bytes of a body in pieces the kernel has taken. */
  takenBytes = 0;
  /** True if `LargeBodies` counts the body; `UnsentAnswers` must not count it again. */
  isCountedElsewhere = false;
  /** True if the last byte is written to the connection, although `end` comes later (`LongPolls`). */
  isWritten = false;

  override writeHead(statusCode: number, statusMessage?: string, headers?: GivenHeaders): this;
  override writeHead(statusCode: number, headers?: GivenHeaders): this;
  override writeHead(statusCode: number, second?: string | GivenHeaders, third?: GivenHeaders): this {
    const ordered = new OrderedHeaders();
    // Moves the headers of `setHeader` into the same order as all others.
    for (const name of this.getHeaderNames()) {
      ordered.add(name, this.getHeader(name));
      this.removeHeader(name);
    }
    ordered.addAll(typeof second === "string" ? third : second);
    this.announcedBytes = ordered.lengthBytes;
    return typeof second === "string"
      ? super.writeHead(statusCode, second, ordered.toRaw())
      : super.writeHead(statusCode, ordered.toRaw());
  }

  /**
   * Writes the head as it is, which is faster than `writeHead`. The headers must have their final spelling and order,
   * Content-Length last. `setHeader` must not have been called.
   */
  writeOrdered(statusCode: number, headers: string[]): void {
    this.announcedBytes = Number(headers.at(-1));
    super.writeHead(statusCode, headers);
  }
}

/** Collects headers. `toRaw` returns names and values in turn, the form that Node handles fastest. */
class OrderedHeaders {
  #type: OutgoingHttpHeader | undefined;
  #length: OutgoingHttpHeader | undefined;
  readonly #others: OutgoingHttpHeader[] = [];

  get lengthBytes(): number | undefined {
    return this.#length === undefined ? undefined : Number(this.#length);
  }

  addAll(headers: GivenHeaders | undefined): void {
    if (headers === undefined) return;
    if (Array.isArray(headers)) {
      for (let at = 0; at + 1 < headers.length; at += 2) this.add(String(headers[at]), headers[at + 1]);
    } else {
      for (const name in headers) this.add(name, headers[name]);
    }
  }

  /** For Content-Type and Content-Length the last value counts. */
  add(name: string, value: OutgoingHttpHeader | undefined): void {
    if (value === undefined) return;
    const spelling = titleCase(name);
    if (spelling === "Content-Type") this.#type = value;
    else if (spelling === "Content-Length") this.#length = value;
    else this.#others.push(spelling, value);
  }

  toRaw(): OutgoingHttpHeader[] {
    if (this.#type !== undefined) this.#others.unshift("Content-Type", this.#type);
    if (this.#length !== undefined) this.#others.push("Content-Length", this.#length);
    return this.#others;
  }
}

// Header names come from our own code, so this map stays small.
const spellings = new Map<string, string>();

function titleCase(name: string): string {
  const known = spellings.get(name);
  if (known !== undefined) return known;
  const spelling = name.toLowerCase().replaceAll(/(?:^|-)[a-z]/g, (start) => start.toUpperCase());
  spellings.set(name, spelling);
  return spelling;
}
