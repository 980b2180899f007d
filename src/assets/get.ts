/**
 * Sends the requests of a download over HTTP or HTTPS, and follows redirects. It does not use Node's `fetch`, which can
 * end the process: an assertion of its parser fails if a server without keep-alive closes the connection before its
 * answer is read.
 */

import { type ClientRequest, get as getByHttp, type IncomingMessage } from "node:http";
import { get as getByHttps } from "node:https";
import type { LookupFunction } from "node:net";

interface GetOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** The longest silence of the server, in milliseconds. */
  readonly timeout: number;
  /** Finds the addresses of a name. Default: the system's way. */
  readonly lookup?: LookupFunction;
}

/** Sends one request. It follows no redirect, and rejects with the errors of the connection. */
export type Ask = (url: URL, options: GetOptions) => Promise<IncomingMessage>;

// As many redirects as browsers follow.
const mostRedirects = 20;
const redirectStatuses: ReadonlySet<number | undefined> = new Set([301, 302, 303, 307, 308]);

/**
 * Sends a request and follows redirects.
 * @param refusalOf returns why davit must not request a URL; undefined if it may. It gets the first URL and each
 *   redirect.
 * @returns the answer, whatever its status. The caller must read or destroy it.
 * @throws {DownloadError} for a URL that davit must not request, and for too many redirects; the connection's errors.
 */
export async function get(
  url: URL,
  options: GetOptions,
  { ask, refusalOf }: { readonly ask: Ask; readonly refusalOf: (url: URL) => string | undefined },
): Promise<IncomingMessage> {
  let target = url;
  for (let redirects = 0; redirects <= mostRedirects; redirects++) {
    const refusal = refusalOf(target);
    if (refusal !== undefined) throw new DownloadError(redirects === 0 ? refusal : `it is redirected, and ${refusal}`);
    const answer = await ask(target, options);
    const { location } = answer.headers;
    if (!redirectStatuses.has(answer.statusCode) || location === undefined) return answer;
    answer.destroy();
    target = redirected(target, location);
  }
  throw new DownloadError(`it is redirected more than ${mostRedirects} times: correct url`);
}

/** @throws {DownloadError} for a redirect that davit does not follow. */
function redirected(from: URL, location: string): URL {
  const next = URL.parse(location, from.href);
  if (next === null || !/^https?:$/.test(next.protocol)) {
    throw new DownloadError("it is redirected to a URL that is not http or https: correct url");
  }
  // Web servers redirect a directory to itself with a slash.
  if (next.pathname === `${from.pathname}/`) throw new DownloadError("its URL is a directory: name a file in it");
  if (from.protocol === "https:" && next.protocol === "http:") {
    throw new DownloadError("it is redirected from https to http");
  }
  return next;
}

/** Sends a request without credentials. */
export const askServer: Ask = (url, options) =>
  answerOrSilence(url.protocol === "https:" ? getByHttps(url, options) : getByHttp(url, options));

/** Resolves with the answer of a request. After its `timeout`, the request or its answer fails. */
export function answerOrSilence(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.on("timeout", () => sent.destroy(Object.assign(new Error("The server is silent"), { code: "ETIMEDOUT" })));
    sent.on("error", reject).on("response", resolve);
    sent.end();
  });
}

/** The reason why an asset could not be downloaded. Messages put it after the asset's name. It never quotes a URL. */
export class DownloadError extends Error {
  override readonly name = "DownloadError";
  /** True if a retry may succeed. */
  readonly mayPass: boolean;
  /** The wait that the server asked for (`Retry-After`); 0 if it asked for none. */
  readonly retryAfterMs: number;

  constructor(message: string, { mayPass = false, retryAfterMs = 0 } = {}) {
    super(message);
    this.mayPass = mayPass;
    this.retryAfterMs = retryAfterMs;
  }
}
