/**
 * The response class of every listener: it spells header names in Title-Case, puts Content-Type first and
 * Content-Length last.
 *
 * GRUB compares `Content-Length: ` byte by byte, and Fastify writes lower case: GRUB then waits 68 s for each file. On
 * an error status GRUB swallows the first header line, so that line must not be the length (GRUB 2.06
 * grub-core/net/http.c; measured with Debian 12). Node adds Date and Connection after these.
 */

import { type IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from "node:http";

type GivenHeaders = OutgoingHttpHeaders | OutgoingHttpHeader[];

export class WireResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** The body's length by the head; undefined until there is a head, or if the head names none. */
  announcedBytes: number | undefined;
  /** How much of a body in pieces the network has taken. */
  takenBytes = 0;
  /** True if the body is shared with other answers and counted with them. */
  isCountedElsewhere = false;

  override writeHead(statusCode: number, statusMessage?: string, headers?: GivenHeaders): this;
  override writeHead(statusCode: number, headers?: GivenHeaders): this;
  override writeHead(statusCode: number, second?: string | GivenHeaders, third?: GivenHeaders): this {
    const ordered = new OrderedHeaders();
    // Removes what `setHeader` collected, so that it is written in our order too.
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
   * As `writeHead`, for headers that already have their final spelling and order, when nothing was set before. The
   * value of Content-Length is the last one.
   */
  writeOrdered(statusCode: number, headers: string[]): void {
    this.announcedBytes = Number(headers.at(-1));
    super.writeHead(statusCode, headers);
  }
}

/** Headers in the form that costs Node least: name, value, name, value. */
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
