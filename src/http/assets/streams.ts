/**
 * Sends pieces of assets, each after the kernel has taken the one before: what a client has not fetched is in the
 * socket's buffers or still in the file. It limits the answers that are sent at one time.
 */

import type { ServerResponse } from "node:http";
import type { Metrics } from "../../lib/metrics.ts";
import { Shares } from "../../lib/shares.ts";
import { Turns } from "../../lib/slices.ts";
import type { Holder } from "../client-shares.ts";
import { WireResponse } from "../response-headers.ts";
import type { AssetPiece, AssetPieces } from "./pieces.ts";

/**
 * One write in each turn of the event loop: the kernel copies a piece within the call, which takes milliseconds. Node
 * accepts one connection in each turn, so a machine behind a burst of downloads would wait for a write of each of them.
 * Where 128 or more wait to write, 32 turns pass between two writes.
 */
const turns = new Turns((waiting) => (waiting < 128 ? 0 : 32));

export class AssetStreams {
  readonly #shares: Shares;
  readonly #running: Metrics["assetStreams"];

  /** @param limit answers at one time; no client has more of them than are left free. */
  constructor(limit: number, running: Metrics["assetStreams"]) {
    this.#shares = new Shares({ limit });
    this.#running = running;
  }

  /** @returns false when the limit is reached; else the caller calls `leave` when its answer has ended. */
  enter(client: Holder): boolean {
    const isIn = this.#shares.take(client);
    this.#running.set(this.#shares.total);
    return isIn;
  }

  leave(client: Holder): void {
    this.#shares.release(client);
    this.#running.set(this.#shares.total);
  }
}

/**
 * Writes `first` and all later pieces to an answer whose head is written, and ends the answer.
 * @returns false when the client has gone.
 * @throws what `pieces` throw; the answer is cut.
 */
export async function sendPieces(response: ServerResponse, first: AssetPiece, pieces: AssetPieces): Promise<boolean> {
  try {
    for (let piece: AssetPiece | undefined = first; piece !== undefined; piece = await pieces.next()) {
      if (!(await write(response, piece))) return false;
    }
    response.end();
    return true;
  } catch (error) {
    // The announced bytes will not follow: only a closed connection makes that clear to the client.
    response.destroy();
    throw error;
  }
}

/** Resolves when the kernel has taken the whole piece: with false when it never will. */
async function write(response: ServerResponse, { bytes, release }: AssetPiece): Promise<boolean> {
  try {
    await turns.next();
    // Node keeps what is written to an ended socket, and never reports it.
    if (response.destroyed || response.socket?.writable === false) return false;
    // Node kept the head until now: it hands head and bytes to the kernel in one call.
    const isTaken = await new Promise<boolean>((resolve) => {
      response.write(bytes, (error) => resolve(error === undefined || error === null));
    });
    if (isTaken && response instanceof WireResponse) response.takenBytes += bytes.length;
    return isTaken;
  } finally {
    release();
  }
}
