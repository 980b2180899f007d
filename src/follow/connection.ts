/** One connection to the store: opens it, reads from it, and ends it when nothing has arrived for too long. */

import type { ClientRequest } from "node:http";
import { TLSSocket } from "node:tls";
import type { Clock } from "../lib/clock.ts";
import { Deadline } from "../lib/deadline.ts";
import type { FollowedCopy } from "./copy.ts";
import { FollowError } from "./follow-error.ts";
import { answerTo, asFollowError, askStore, type StoreCredentials } from "./store-request.ts";

export interface ConnectionOptions {
  /** The store's origin, `http:` or `https:`. */
  readonly url: URL;
  /** The path of the route that is followed. */
  readonly path: string;
  readonly credentials: StoreCredentials;
  /** The place up to which the follower has the store's history. */
  readonly place: FollowedCopy["place"];
  /** What the follower calls itself, for people. */
  readonly name?: string | undefined;
  readonly clock: Clock;
  /** The longest silence, before the answer or within it. After that the connection ends. */
  readonly silenceMs: number;
  /** Ends the connection without an error. */
  readonly signal: AbortSignal;
  /** Called when the connection is open, before the store has answered. */
  readonly connected: () => void;
  readonly heard: (chunk: Buffer) => void;
}

/**
 * The longest time to open a connection, including TLS. In a cluster, a name may resolve to the address of a
 * removed pod for some seconds. The removed pod never answers, but a retry may get the address of another pod.
 */
const connectLimitMs = 5_000;

/**
 * Reads until the connection ends.
 * @throws {FollowError} with the reason of the end, unless `signal` ended the connection; and any error of `heard`.
 */
export async function listenToStore(options: ConnectionOptions): Promise<void> {
  const { signal, connected, heard } = options;
  if (signal.aborted) return;
  const sent = send(options);
  const silence = new Deadline({ clock: options.clock, durationMs: options.silenceMs });
  const connecting = new Deadline({ clock: options.clock, durationMs: connectLimitMs });
  whenConnected(sent, () => {
    connecting.cancel();
    connected();
  });
  const stop = () => sent.destroy();
  signal.addEventListener("abort", stop, { once: true });
  for (const deadline of [silence, connecting]) {
    deadline.signal.addEventListener("abort", () => sent.destroy(new FollowError("silent")), { once: true });
  }
  try {
    const response = await answerTo(sent);
    for await (const chunk of response) {
      silence.putOff();
      heard(Buffer.from(chunk));
    }
    throw new FollowError("ended");
  } catch (error) {
    // `signal` made davit cut the connection, so the error does not matter.
    if (signal.aborted) return;
    if (connecting.hasPassed) throw new FollowError("unreachable", "no connection in time");
    throw silence.hasPassed ? new FollowError("silent") : asFollowError(error);
  } finally {
    silence.cancel();
    connecting.cancel();
    signal.removeEventListener("abort", stop);
    sent.destroy();
  }
}

/** Calls `connected` when the connection can carry a request. With TLS, that is after the handshake. */
function whenConnected(sent: ClientRequest, connected: () => void): void {
  sent.once("socket", (socket) => socket.once(socket instanceof TLSSocket ? "secureConnect" : "connect", connected));
}

function send({ url, path, credentials, place, name }: ConnectionOptions): ClientRequest {
  const query = new URLSearchParams(place && { cluster: place.cluster, after: String(place.index) });
  if (place?.run !== undefined) query.set("run", place.run);
  if (name !== undefined) query.set("name", name);
  return askStore(new URL(`${path}?${query}`, url), credentials);
}
