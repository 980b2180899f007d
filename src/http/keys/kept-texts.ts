/**
 * Bodies of listings that were sent, to be sent again. Clients of this protocol ask for the same listing again and again,
 * and writing one of 10,000 keys takes some 13 ms of the only thread, while sending what is written takes one. So a text
 * is kept until it is asked for after something at or below its path has changed, or others need its place.
 *
 * It keeps whole texts alone, in the very pieces in which they went out, so that nobody can tell a kept answer from
 * another; and none that time changes, since something in it has a ttl. What it keeps has a bound, in which the texts
 * count, too, that are being made or sent: where slow readers fill it, nothing more is kept.
 */

import type { Listing } from "../../store/listing.ts";
import type { BegunListing } from "./answers.ts";

export interface KeptTextsOptions {
  /** Of all texts. */
  readonly maxBytes?: number;
  readonly maxTextBytes?: number;
}

/** The body of a listing, the last piece of which is returned. */
export interface ListingPieces {
  next(): IteratorResult<Buffer, Buffer>;
  /** To be called when no more are taken; ends the listing, too. Idempotent, and not needed behind the last piece. */
  end(): void;
}

interface ListingText {
  readonly version: symbol;
  readonly pieces: Buffer[];
  /** Of the pieces, and what else it takes. */
  bytes: number;
  /** Who needs it: those who make or send it, and the one that keeps it. */
  holders: number;
}

const presetMaxBytes = 32 * 1024 * 1024;
// Some 40,000 small keys. Larger listings would leave no place for others.
const presetMaxTextBytes = 8 * 1024 * 1024;
// What a text costs beside its pieces and its path, with room to spare: a text of no keys takes some 500 bytes.
const overheadBytes = 1_024;

export class KeptTexts {
  readonly #maxBytes: number;
  readonly #maxTextBytes: number;
  /** By what was asked; the one that was not asked for the longest time comes first. */
  readonly #texts = new Map<string, ListingText>();
  #bytes = 0;

  constructor({ maxBytes = presetMaxBytes, maxTextBytes = presetMaxTextBytes }: KeptTextsOptions = {}) {
    this.#maxBytes = maxBytes;
    this.#maxTextBytes = maxTextBytes;
  }

  /** Of all texts that are kept, and of those that are being made or sent. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How many are kept. */
  get count(): number {
    return this.#texts.size;
  }

  /**
   * The body of a listing that has just begun: as it was kept, or as `make` writes it.
   * @param make is called only if it was not kept.
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

  /** What is kept and still true. */
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
        // What changed meanwhile is not asked for again.
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

  /** @returns false when there is no room for so much more. */
  #claim(text: ListingText, bytes: number): boolean {
    if (text.bytes + bytes > this.#maxTextBytes) return false;
    for (const [key, oldest] of this.#texts) {
      if (this.#bytes + bytes <= this.#maxBytes) break;
      // One that is being sent would stay in memory all the same.
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
    // Somebody else was faster. Should his be out of date, it goes when it is asked for.
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
  /** Of its beginning. */
  readonly version: symbol | undefined;
  readonly key: string;
  readonly pieces: Iterator<string, string>;
}

const noBytes = Buffer.alloc(0);

/** In memory of their own: a small buffer of Node's pool keeps all of that. */
function bytesOf(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}
