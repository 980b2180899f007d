/**
 * Sends assets piece by piece. A piece is read only after the kernel has taken the one before. So davit holds one piece
 * of each download, and the rest is in the kernel's buffer or still in the file. The number of downloads at one time is
 * limited: any further request waits for a place.
 */

import type { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import type { Clock } from "../../lib/clock.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { Shares } from "../../lib/shares.ts";
import { Turns } from "../../lib/slices.ts";
import type { Holder } from "../client-shares.ts";
import { RequestError } from "../errors.ts";
import { WireResponse } from "../response-headers.ts";
import { chunkBytes } from "./cache.ts";
import type { AssetPiece, AssetPieces } from "./pieces.ts";

/**
 * In each turn of the event loop, all downloads together write at most as much as one large piece, because the kernel
 * copies a piece during the call. If each download wrote in each turn, a new connection would wait for all of them.
 */
const turns = new Turns(chunkBytes);

interface AssetStreamsOptions {
  /** The most downloads at one time. No client may have more than remain free. */
  readonly limit: number;
  /** How long a request waits for a place. */
  readonly maxWaitMs: number;
  readonly clock: Pick<Clock, "sleep">;
  readonly running: Metrics["assetStreams"];
}

/** The answer to a request that waits. It emits `close`, and is destroyed, when its client has gone. */
type WaitingAnswer = EventEmitter & Pick<ServerResponse, "destroyed">;

/** The requests of one client. Each function ends the wait of its request. */
interface WaitingRequests {
  readonly client: Holder;
  readonly requests: Set<(isIn: boolean) => void>;
}

export class AssetStreams {
  readonly #options: AssetStreamsOptions;
  readonly #shares: Shares;
  /**
   * The requests that wait for a place, by client. The first client has the next turn. Without limits by client, each
   * request has turns of its own.
   */
  readonly #waiting = new Map<Holder | WaitingAnswer, WaitingRequests>();
  #isEnding = false;

  constructor(options: AssetStreamsOptions) {
    this.#options = options;
    this.#shares = new Shares({ limit: options.limit });
  }

  /** Takes a place. @returns false if there is none. Otherwise the caller must call `leave` when the download ends. */
  tryEnter(client: Holder): boolean {
    const isIn = !this.#waiting.has(client) && this.#shares.take(client);
    if (isIn) this.#options.running.inc();
    return isIn;
  }

  /**
   * Waits for a place. Clients take turns, and requests of one client keep their order. The caller must call `leave`
   * when the download ends.
   * @throws {RequestError} overloaded, if the request has no place after `maxWaitMs`, if its client has gone, or if
   * davit ends.
   */
  async enter(client: Holder, response: WaitingAnswer): Promise<void> {
    if (this.tryEnter(client)) return;
    if (this.#isEnding || response.destroyed || !(await this.#wait(client, response)))
      throw new RequestError("overloaded");
  }

  leave(client: Holder): void {
    this.#shares.release(client);
    this.#options.running.dec();
    this.#admit();
  }

  /** Refuses the requests that wait, and later ones that find no free place. */
  end(): void {
    this.#isEnding = true;
    for (const { requests } of [...this.#waiting.values()]) for (const settle of [...requests]) settle(false);
  }

  /** @returns false if the request gives up. */
  #wait(client: Holder, response: WaitingAnswer): Promise<boolean> {
    const key = client ?? response;
    const line = this.#waiting.get(key) ?? { client, requests: new Set() };
    this.#waiting.set(key, line);
    return new Promise((resolve) => {
      const settled = new AbortController();
      const settle = (isIn: boolean) => {
        if (settled.signal.aborted) return;
        settled.abort();
        response.off("close", giveUp);
        line.requests.delete(settle);
        if (line.requests.size === 0) this.#waiting.delete(key);
        resolve(isIn);
      };
      const giveUp = () => settle(false);
      const { clock, maxWaitMs } = this.#options;
      void clock.sleep(maxWaitMs, settled.signal).then(giveUp);
      response.once("close", giveUp);
      line.requests.add(settle);
    });
  }

  /** Gives the free places to the next requests whose clients may have them. */
  #admit(): void {
    for (const [key, line] of this.#waiting) {
      if (this.#shares.total >= this.#options.limit) return;
      if (!this.#shares.take(line.client)) continue;
      this.#options.running.inc();
      // The client moves to the end. `settle` removes it if it has no other request that waits.
      this.#waiting.delete(key);
      this.#waiting.set(key, line);
      const [settle] = line.requests;
      settle?.(true);
    }
  }
}

/**
 * Writes `first` and all later pieces to an answer whose head is written, and ends the answer.
 * @returns false when the client has gone.
 * @throws what `pieces` throw, after cutting the answer.
 */
export async function sendPieces(response: ServerResponse, first: AssetPiece, pieces: AssetPieces): Promise<boolean> {
  try {
    for (let piece: AssetPiece | undefined = first; piece !== undefined; piece = await pieces.next()) {
      if (!(await write(response, piece))) return false;
    }
    response.end();
    return true;
  } catch (error) {
    // The announced bytes will not follow. Only a closed connection shows that to the client.
    response.destroy();
    throw error;
  }
}

/**
 * Writes a piece and releases it. Resolves to true when the kernel has taken the whole piece, to false if the kernel
 * will not take it.
 */
async function write(response: ServerResponse, { bytes, release }: AssetPiece): Promise<boolean> {
  try {
    await turns.next(bytes.length);
    // Node keeps what is written to an ended socket, and never calls back.
    if (response.destroyed || response.socket?.writable === false) return false;
    // Node has kept the head until now. It passes head and bytes to the kernel in one call.
    const isTaken = await new Promise<boolean>((resolve) => {
      response.write(bytes, (error) => resolve(error === undefined || error === null));
    });
    if (isTaken && response instanceof WireResponse) response.takenBytes += bytes.length;
    return isTaken;
  } finally {
    release();
  }
}
