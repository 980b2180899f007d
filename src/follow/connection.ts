/** One connection to the store: it is opened, it is listened to, and it is given up when nothing has come for too long. */

import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Clock } from "../lib/clock.ts";
import { Deadline } from "../lib/deadline.ts";
import { codeOf } from "../lib/errors.ts";
import { followPath } from "../model/follow-line.ts";
import type { Copy } from "./copy.ts";
import { FollowError } from "./follow-error.ts";

/** What a follower shows, and whom it trusts; certificates and keys are PEM. */
export interface Credentials {
  readonly token?: string | undefined;
  /** Instead of the authorities that everyone trusts. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

export interface ConnectionOptions {
  /** The store's origin, `http:` or `https:`. */
  readonly url: URL;
  readonly credentials: Credentials;
  /** What the follower has already. */
  readonly place: Pick<Copy, "cluster" | "index"> | undefined;
  readonly clock: Clock;
  /** Longer silence, before the answer as well as within it, ends the connection. */
  readonly silenceMs: number;
  /** Ends the connection without an error. */
  readonly signal: AbortSignal;
  readonly heard: (chunk: Buffer) => void;
}

/**
 * Listens until the connection ends.
 * @throws {FollowError} with the reason of its end, unless `signal` ended it; and whatever `heard` throws.
 */
export async function listenToStore(options: ConnectionOptions): Promise<void> {
  const { signal, heard } = options;
  const sent = send(options);
  const silence = new Deadline({ clock: options.clock, durationMs: options.silenceMs });
  const stop = () => sent.destroy();
  signal.addEventListener("abort", stop, { once: true });
  silence.signal.addEventListener("abort", () => sent.destroy(new FollowError("silent")), { once: true });
  try {
    const response = await answerTo(sent);
    for await (const chunk of response) {
      silence.putOff();
      heard(Buffer.from(chunk));
    }
    throw new FollowError("ended");
  } catch (error) {
    if (!signal.aborted) throw asFollowError(error, silence);
  } finally {
    silence.cancel();
    signal.removeEventListener("abort", stop);
    sent.destroy();
  }
}

function send({ url, credentials, place }: ConnectionOptions): ClientRequest {
  const { token, ca, cert, key } = credentials;
  const query = new URLSearchParams(place && { cluster: place.cluster, after: String(place.index) });
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  // No agent: a connection is used once, and nothing waits for another's end.
  const target = new URL(`${followPath}?${query}`, url);
  return url.protocol === "https:"
    ? httpsRequest(target, { agent: false, headers, ca, cert, key })
    : httpRequest(target, { agent: false, headers });
}

function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.on("error", reject);
    sent.on("response", (response) => {
      const { statusCode } = response;
      // A redirect is refused, too: credentials go to the store that was named.
      if (statusCode === 200) resolve(response);
      else reject(new FollowError("refused", `status ${statusCode}`));
    });
    sent.end();
  });
}

/** Node's own messages may quote what was sent: only codes are kept. What is no failure of the network is a bug. */
function asFollowError(error: unknown, { hasPassed }: Deadline): unknown {
  // What the cut itself looks like depends on how far the answer was.
  if (hasPassed) return new FollowError("silent");
  const code = codeOf(error);
  if (error instanceof FollowError || code === undefined) return error;
  return new FollowError(code === "ECONNRESET" ? "ended" : "unreachable", code, { cause: error });
}
