/**
 * Answers reads, which can list a million keys. A listing that fits into one piece is sent whole, with its length. A
 * longer listing is sent in pieces, with chunked encoding. Each piece is made after the client has taken the one
 * before, so a listing delays other requests by at most one piece. All pieces show the state of the store when the
 * listing began. For a slow reader davit keeps one piece, and the old versions of nodes that change meanwhile.
 *
 * davit cuts the connection if the client takes nothing for too long, or is so slow that too much has changed. So
 * nobody takes a part of a listing for the whole.
 */

import type { ServerResponse } from "node:http";
import type { Clock } from "../../lib/clock.ts";
import { Places } from "../../lib/fair-queue.ts";
import { Turns } from "../../lib/slices.ts";
import { Clients } from "../client-shares.ts";
import { type Answer, begin as beginAnswer, type Exchange } from "../exchange.ts";
import type { BegunListing } from "./answers.ts";
import { readPieces } from "./json.ts";

interface OpenListingsOptions {
  readonly clock: Clock;
  /** Names the client of a request. */
  readonly clients?: Clients;
  /** How many listings may be sent in pieces at a time; others wait for their turn. */
  readonly maxOpen?: number;
  /** The longest time that a client may take for a piece. */
  readonly stallMs?: number;
}

interface ListingStream extends BegunListing {
  /** The last piece is the return value. */
  readonly pieces: Iterator<string, string>;
  readonly first: IteratorResult<string, string>;
}

// In characters. About 400 small keys, which take half a millisecond. Larger pieces exceed the processor's cache, so a
// whole listing takes longer.
const pieceLength = 64 * 1024;
// Each open listing can hold the names of a large directory in memory. More open listings were no faster in
// measurements.
const presetMaxOpen = 16;
const presetStallMs = 30_000;
/** How long a client may take for a piece while others wait for their turn. */
const crowdedMs = 1_000;

export class OpenListings {
  readonly #clock: Clock;
  readonly #clients: Clients;
  readonly #stallMs: number;
  readonly #turns = new Turns();
  /** Of the open listings. Clients take turns. */
  readonly #places: Places;
  /** How many listings gave up their places and are about to end. */
  #leaving = 0;

  constructor({
    clock,
    clients = new Clients(),
    maxOpen = presetMaxOpen,
    stallMs = presetStallMs,
  }: OpenListingsOptions) {
    this.#clock = clock;
    this.#clients = clients;
    this.#places = new Places(maxOpen);
    this.#stallMs = stallMs;
  }

  /**
   * Answers with the listing of `begin`. If the listing must wait for a place, it is ended, and `begin` is called again
   * in its turn.
   * @throws what `begin` throws, before anything is answered.
   */
  async answer(exchange: Exchange, begin: () => BegunListing): Promise<Answer | undefined> {
    const stream = this.#started(begin());
    if (stream.first.done === true) return wholeAnswer(stream);
    if (exchange.request.method === "HEAD") return headAnswer(stream);
    if (this.#places.tryEnter()) return this.#send(exchange, stream);
    stream.listing.end();
    await this.#places.enter([this.#clients.ofRequest(exchange.request) ?? ""]);
    return this.#sendLate(exchange, begin);
  }

  /** Answers a listing that has waited, in the place of one that has ended. */
  #sendLate(exchange: Exchange, begin: () => BegunListing): Answer | undefined {
    try {
      const stream = this.#started(begin());
      if (stream.first.done !== true) return this.#send(exchange, stream);
      this.#leave();
      return wholeAnswer(stream);
    } catch (error) {
      this.#leave();
      throw error;
    }
  }

  #started(begun: BegunListing): ListingStream {
    const pieces = readPieces(begun.listing.steps(), pieceLength);
    return { ...begun, pieces, first: pieces.next() };
  }

  #send({ response }: Exchange, stream: ListingStream): undefined {
    void this.#pump(beginAnswer(response, 200, stream.headers), stream);
  }

  async #pump(response: ServerResponse, { listing, pieces, first }: ListingStream): Promise<void> {
    try {
      let piece = first;
      while (piece.done !== true) {
        const isGoingOn = await this.#give(response, piece.value);
        if (!isGoingOn || listing.isOvertaken) {
          response.destroy();
          return;
        }
        piece = pieces.next();
      }
      response.end(piece.value);
    } finally {
      listing.end();
      this.#leave();
    }
  }

  /**
   * Writes a piece. Resolves to true when it is time for the next piece, to false if the client does not take this
   * piece.
   */
  async #give(response: ServerResponse, piece: string): Promise<boolean> {
    if (response.destroyed) return false;
    // A piece is empty if no step of it had a result.
    if (piece.length > 0 && !response.write(piece) && !(await this.#isTaken(response))) return false;
    await this.#turns.next();
    return !response.destroyed;
  }

  async #isTaken(response: ServerResponse): Promise<boolean> {
    const over = new AbortController();
    // Without a reason, `abort` would create an error each time.
    const end = () => over.abort("over");
    response.once("drain", end).once("close", end);
    for (let waitedMs = 0; waitedMs < this.#stallMs && !over.signal.aborted; ) {
      const stepMs = Math.min(crowdedMs, this.#stallMs - waitedMs);
      await this.#clock.sleep(stepMs, over.signal);
      waitedMs += stepMs;
      // For each waiting listing, one slow listing gives up its place.
      if (this.#places.waiting > this.#leaving) {
        this.#leaving += 1;
        break;
      }
    }
    response.off("drain", end).off("close", end);
    return over.signal.aborted;
  }

  #leave(): void {
    this.#leaving = Math.max(this.#leaving - 1, 0);
    this.#places.leave();
  }
}

/** Answers a listing whose first piece is its last. */
function wholeAnswer({ listing, headers, first }: ListingStream): Answer {
  listing.end();
  return { status: 200, headers, body: first.value };
}

/** Answers HEAD like a GET, but without the length: only the whole listing would show it. */
function headAnswer({ listing, headers }: ListingStream): Answer {
  listing.end();
  return { status: 200, headers };
}
