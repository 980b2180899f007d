/**
 * Caches the bodies of listings, because clients of this protocol request the same listing repeatedly. Making the body
 * for 10,000 keys takes 13 ms of the only thread; sending a cached body takes 1 ms. A cached body is dropped when a
 * request finds that something at or below its path has changed. It is also dropped when other bodies need the room.
 *
 * Only whole bodies are cached, in the pieces in which they were sent. So a cached answer looks like any other. No body
 * with a ttl is cached, because a ttl changes with time. The limit on memory includes bodies that are being made or
 * sent. When slow readers use it up, nothing more is cached.
 */

import type { Listing } from "../../store/tree/listing.ts";
import type { BegunListing } from "./answers.ts";

export interface KeptTextsOptions {
  /** The most bytes of all bodies together. */
  readonly maxBytes?: number;
  readonly maxTextBytes?: number;
}

/** The body of a listing. Its last piece is the return value. */
export interface ListingPieces {
  next(): IteratorResult<Buffer, Buffer>;
  /**
   * Ends the pieces and the listing. The caller calls `end` when it takes no more pieces. Idempotent, and not needed
   * after the last piece.
   */
  end(): void;
}

/** A body that is cached, being made or being sent. */
interface ListingText {
  readonly version: symbol;
  readonly pieces: Buffer[];
  /** The bytes of the pieces, and the overhead. */
  bytes: number;
  /** How many use this text: answers that make or send it, and the cache itself. */
  holders: number;
}

const presetMaxBytes = 32 * 1024 * 1024;
// About 40,000 small keys. Larger listings would leave no place for others.
const presetMaxTextBytes = 8 * 1024 * 1024;
// What a text takes besides its pieces and its path. A text without keys takes about 500 bytes; this leaves a margin.
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

  /** The bytes of all texts that are cached, being made or being sent. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How many texts are cached. */
  get count(): number {
    return this.#texts.size;
  }

  /**
   * Returns the body of a listing that has just begun: the cached one, or a new one from `make`.
   * @param make called only if no body is cached.
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

  /** Returns the cached text; drops it if it is out of date. */
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
        // If the listing has changed meanwhile, no later request can use this text.
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

  /**
   * Counts further bytes of a text, and drops cached texts until there is room.
   * @returns false if there is no room.
   */
  #claim(text: ListingText, bytes: number): boolean {
    if (text.bytes + bytes > this.#maxTextBytes) return false;
    for (const [key, oldest] of this.#texts) {
      if (this.#bytes + bytes <= this.#maxBytes) break;
      // Dropping a text that is being sent would free no memory.
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
    // Another request was faster and has cached its text. If that text is out of date, the next request drops it.
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

/**
 * Encodes a text into a buffer of its own. A small buffer of Node's pool would keep a whole block of the pool in
 * memory.
 */
function bytesOf(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}
