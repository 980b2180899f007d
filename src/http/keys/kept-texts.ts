/**
 * Keeps sent bodies of listings, to send them again. Clients of this protocol request the same listing repeatedly.
 * Writing a listing of 10,000 keys takes about 13 ms of the only thread; sending a kept one takes 1 ms. A text is kept
 * until something at or below its path has changed at the next request, or until others need its place.
 *
 * It keeps only whole texts, in the pieces in which they were sent, so a kept answer looks like any other. It keeps no
 * text with a ttl in it, since time changes that. Its memory has a bound, which includes texts that are being made or
 * sent: when slow readers fill it, nothing more is kept.
 */

import type { Listing } from "../../store/tree/listing.ts";
import type { BegunListing } from "./answers.ts";

export interface KeptTextsOptions {
  /** Of all texts. */
  readonly maxBytes?: number;
  readonly maxTextBytes?: number;
}

/** The body of a listing. Its last piece is the return value. */
export interface ListingPieces {
  next(): IteratorResult<Buffer, Buffer>;
  /**
   * Ends the listing, too. The caller calls it when it takes no more pieces. Idempotent, and not needed after the last
   * piece.
   */
  end(): void;
}

interface ListingText {
  readonly version: symbol;
  readonly pieces: Buffer[];
  /** Of the pieces, and the overhead. */
  bytes: number;
  /** How many need it: those who make or send it, and the cache itself. */
  holders: number;
}

const presetMaxBytes = 32 * 1024 * 1024;
// About 40,000 small keys. Larger listings would leave no place for others.
const presetMaxTextBytes = 8 * 1024 * 1024;
// What a text costs beside its pieces and its path, with room to spare: a text of no keys takes about 500 bytes.
const overheadBytes = 1_024;

export class KeptTexts {
  readonly #maxBytes: number;
  readonly #maxTextBytes: number;
  /** By request; the least recently requested comes first. */
  readonly #texts = new Map<string, ListingText>();
  #bytes = 0;

  constructor({ maxBytes = presetMaxBytes, maxTextBytes = presetMaxTextBytes }: KeptTextsOptions = {}) {
    this.#maxBytes = maxBytes;
    this.#maxTextBytes = maxTextBytes;
  }

  /** Of all texts that are kept, being made or being sent. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How many are kept. */
  get count(): number {
    return this.#texts.size;
  }

  /**
   * The body of a listing that has just begun: the kept one, or a new one from `make`.
   * @param make is called only without a kept text.
   */
  piecesOf({ request, listing }: BegunListing, make: () => Iterator<string, string>): ListingPieces {
    const { version } = listing;
    const key = `${request.recursive ? "r" : ""}${request.sorted ? "s" : ""}${request.path}`;
    const kept = this.#find(key, version);
    const steps =
      kept === undefined ? this.#made({ listing, version, key, pieces: make() }) : this.#sent({ listing, text: kept });
    return {
      next: () => steps.next(),
      end: () => {
        listing.end();
        steps.return(noBytes);
      },
    };
  }

  /** The kept text, if it is still up to date. */
  #find(key: string, version: symbol | undefined): ListingText | undefined {
    const text = this.#texts.get(key);
    if (text === undefined) return undefined;
    this.#texts.delete(key);
    if (text.version === version) {
      this.#texts.set(key, text);
      return text;
    }
    this.#release(text);
    return undefined;
  }

  *#sent({
    listing,
    text,
  }: {
    readonly listing: Listing;
    readonly text: ListingText;
  }): Generator<Buffer, Buffer, undefined> {
    text.holders += 1;
    try {
      listing.end();
      for (const piece of text.pieces.slice(0, -1)) yield piece;
      return text.pieces.at(-1) ?? noBytes;
    } finally {
      this.#release(text);
    }
  }

  *#made({ listing, version, key, pieces }: TextInMaking): Generator<Buffer, Buffer, undefined> {
    let text = version === undefined ? undefined : this.#begin(version, key);
    try {
      for (;;) {
        const { done, value } = pieces.next();
        const piece = bytesOf(value);
        // A text whose listing changed meanwhile will not be requested again.
        if (text !== undefined && (listing.version !== version || !this.#add(text, piece))) {
          this.#release(text);
          text = undefined;
        }
        if (done !== true) {
          yield piece;
          continue;
        }
        if (text !== undefined) this.#keep(key, text);
        return piece;
      }
    } finally {
      listing.end();
      if (text !== undefined) this.#release(text);
    }
  }

  #begin(version: symbol, key: string): ListingText | undefined {
    const text = { version, pieces: [], bytes: 0, holders: 1 };
    return this.#claim(text, overheadBytes + 2 * key.length) ? text : undefined;
  }

  #add(text: ListingText, piece: Buffer): boolean {
    if (!this.#claim(text, piece.length)) return false;
    text.pieces.push(piece);
    return true;
  }

  /** @returns false without room for this many more bytes. */
  #claim(text: ListingText, bytes: number): boolean {
    if (text.bytes + bytes > this.#maxTextBytes) return false;
    for (const [key, oldest] of this.#texts) {
      if (this.#bytes + bytes <= this.#maxBytes) break;
      // A text that is being sent would stay in memory anyway.
      if (oldest.holders > 1) continue;
      this.#texts.delete(key);
      this.#release(oldest);
    }
    if (this.#bytes + bytes > this.#maxBytes) return false;
    text.bytes += bytes;
    this.#bytes += bytes;
    return true;
  }

  #keep(key: string, text: ListingText): void {
    // Another request has stored its text first. If that text is outdated, the next request drops it.
    if (this.#texts.has(key)) return;
    text.holders += 1;
    this.#texts.set(key, text);
  }

  #release(text: ListingText): void {
    text.holders -= 1;
    if (text.holders === 0) this.#bytes -= text.bytes;
  }
}

interface TextInMaking {
  readonly listing: Listing;
  /** The version when the listing began. */
  readonly version: symbol | undefined;
  readonly key: string;
  readonly pieces: Iterator<string, string>;
}

const noBytes = Buffer.alloc(0);

/** In memory of their own: a small buffer would keep the whole block of Node's pool alive. */
function bytesOf(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}
