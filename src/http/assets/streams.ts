/**
 * Sends assets piece by piece. A piece is read only after the kernel has taken the one before. So davit holds one piece
 * of each download, and the rest is in the kernel's buffer or still in the file. The number of downloads at one time is
 * limited.
 */

import type { ServerResponse } from "node:http";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { Shares } from "../../lib/shares.ts";
import { Turns } from "../../lib/slices.ts";
import type { Holder } from "../client-shares.ts";
import { WireResponse } from "../response-headers.ts";
import type { AssetPiece, AssetPieces } from "./pieces.ts";

/**
 * At most one download writes in each turn of the event loop, because the kernel copies a piece during the call. Node
 * accepts one connection in each turn. If all downloads wrote in each turn, a new connection would wait for all of
 * them. If 128 or more wait to write, 32 turns pass between two writes.
 */
const turns = new Turns((waiting) => (waiting < 128 ? 0 : 32));

export class AssetStreams {
  readonly #shares: Shares;
  readonly #running: Metrics["assetStreams"];

  /** @param limit the most downloads at one time. No client may have more than remain free. */
  constructor(limit: number, running: Metrics["assetStreams"]) {
    this.#shares = new Shares({ limit });
    this.#running = running;
  }

  /**
   * Counts a download.
   * @returns false when the limit is reached. Otherwise the caller must call `leave` when the download ends.
   */
  enter(client: Holder): boolean {
    const isIn = this.#shares.take(client);
    if (isIn) this.#running.inc();
    return isIn;
  }

  leave(client: Holder): void {
    this.#shares.release(client);
    this.#running.dec();
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
    await turns.next();
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
