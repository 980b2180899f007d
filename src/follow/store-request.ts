/** One request to a store in another process, with the credentials that the store requires. */

import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { codeOf } from "../lib/errors.ts";
import { FollowError } from "./follow-error.ts";

/** The credentials for the store, and the trusted authorities; certificates and keys are PEM. */
export interface StoreCredentials {
  readonly token?: string | undefined;
  /** Instead of the authorities that everyone trusts. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/**
 * Makes a request with its own connection, which is used once, so that it waits for no other request. `answerTo` sends
 * it.
 */
export function askStore(
  target: URL,
  { token, ca, cert, key }: StoreCredentials,
  options: Pick<RequestOptions, "timeout"> = {},
): ClientRequest {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return target.protocol === "https:"
    ? httpsRequest(target, { ...options, agent: false, headers, ca, cert, key })
    : httpRequest(target, { ...options, agent: false, headers });
}

/** Sends it. @throws {FollowError} refused, and any failure of the connection. */
export function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.on("error", reject);
    sent.on("response", (response) => {
      const { statusCode } = response;
      // A redirect is refused, too: credentials go only to the configured store.
      if (statusCode === 200) resolve(response);
      else reject(new FollowError("refused", `status ${statusCode}`));
    });
    sent.end();
  });
}

/** Node's own messages may quote what was sent: only codes are kept. Errors that are not the network's are bugs. */
export function asFollowError(error: unknown): unknown {
  const code = codeOf(error);
  if (error instanceof FollowError || code === undefined) return error;
  return new FollowError(code === "ECONNRESET" ? "ended" : "unreachable", code, { cause: error });
}
