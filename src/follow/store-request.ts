/** Requests to a store in another process, with the credentials that the store requires. */

import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { TLSSocket } from "node:tls";
import type { Clock } from "../lib/clock.ts";
import { Deadline } from "../lib/deadline.ts";
import { codeOf } from "../lib/errors.ts";
import { FollowError } from "./follow-error.ts";

/** A client's credentials, and the certificate authorities that the client trusts. Certificates and keys are PEM. */
export interface StoreCredentials {
  readonly token?: string | undefined;
  /** The certificate authorities to trust instead of the public ones. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/**
 * Makes a request that `answerTo` sends. It has its own connection, so it waits for no other request, unless an agent
 * is given.
 */
export function askStore(
  target: URL,
  { token, ca, cert, key }: StoreCredentials,
  options: Pick<RequestOptions, "timeout" | "method" | "agent" | "signal"> & {
    readonly headers?: Readonly<Record<string, string>>;
  } = {},
): ClientRequest {
  const headers = { ...options.headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  return target.protocol === "https:"
    ? httpsRequest(target, { agent: false, ...options, headers, ca, cert, key })
    : httpRequest(target, { agent: false, ...options, headers });
}

/**
 * Sends a request and resolves with its answer.
 * @param body a text; or a function that returns it, called when the connection is there.
 * @throws {FollowError} refused for any status but 200; and errors of the connection.
 */
export function answerTo(sent: ClientRequest, body?: string | (() => string)): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.on("error", reject);
    sent.on("response", (response) => {
      const { statusCode } = response;
      // A redirect is refused, too: credentials go only to the configured store.
      if (statusCode === 200) resolve(response);
      else reject(new FollowError("refused", `status ${statusCode}`));
    });
    if (typeof body === "function") whenConnected(sent, () => sent.end(body()));
    else sent.end(body);
  });
}

/** Calls `then` when the connection can carry a request. With TLS, that is after the handshake. */
function whenConnected(sent: ClientRequest, then: () => void): void {
  sent.once("socket", (socket) => {
    if (socket.connecting) socket.once(socket instanceof TLSSocket ? "secureConnect" : "connect", then);
    else then();
  });
}

export interface ReadStoreOptions {
  readonly target: URL;
  readonly credentials: StoreCredentials;
  readonly clock: Clock;
  /** The longest silence, before the answer or within it. After that the connection ends. */
  readonly silenceMs: number;
  /** The longest time to open the connection, including TLS; `silenceMs` unless given. */
  readonly connectMs?: number;
  /** Ends the connection immediately. */
  readonly signal: AbortSignal;
  /** Called when the connection is open, before the store has answered. */
  readonly connected?: () => void;
}

/**
 * Yields the bytes of an answer as soon as they arrive.
 * @throws {FollowError} when the answer cannot be read to its end; `ended` when `signal` ended the connection.
 */
export async function* readStore(options: ReadStoreOptions): AsyncGenerator<Buffer> {
  const { target, credentials, clock, silenceMs, connectMs = silenceMs, signal, connected } = options;
  if (signal.aborted) throw new FollowError("ended");
  const sent = askStore(target, credentials);
  const silence = new Deadline({ clock, durationMs: silenceMs });
  const connecting = new Deadline({ clock, durationMs: connectMs });
  const stop = () => sent.destroy(new FollowError("ended"));
  const ends = [signal, silence.signal, connecting.signal];
  for (const end of ends) end.addEventListener("abort", stop, { once: true });
  whenConnected(sent, () => {
    connecting.cancel();
    connected?.();
  });
  try {
    for await (const chunk of await answerTo(sent)) {
      silence.putOff();
      yield Buffer.from(chunk);
    }
  } catch (error) {
    // The error of a cut connection depends on how far the answer was. The caller gets the same one in any case.
    if (signal.aborted) throw new FollowError("ended");
    if (silence.hasPassed) throw new FollowError("silent");
    throw connecting.hasPassed ? new FollowError("unreachable", "no connection in time") : asFollowError(error);
  } finally {
    silence.cancel();
    connecting.cancel();
    signal.removeEventListener("abort", stop);
    sent.destroy();
  }
}

/**
 * Turns an error of the network into a `FollowError` with only the code: Node's messages may quote what was sent. Any
 * other error is a bug and stays unchanged.
 */
export function asFollowError(error: unknown): unknown {
  const code = codeOf(error);
  if (error instanceof FollowError || code === undefined) return error;
  return new FollowError(code === "ECONNRESET" ? "ended" : "unreachable", code, { cause: error });
}
