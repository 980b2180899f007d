/**
 * GET over HTTP and HTTPS. Node's own `fetch` ends the process by an assertion of its parser if a server without
 * keep-alive closes before its answer is read; the older client does not.
 */

import { get as getByHttp, type IncomingMessage } from "node:http";
import { get as getByHttps } from "node:https";
import { DownloadError } from "./download-error.ts";

export interface GetOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

// As many as browsers follow.
const mostRedirects = 20;
const redirectStatuses: ReadonlySet<number | undefined> = new Set([301, 302, 303, 307, 308]);

/**
 * Asks, and follows redirects.
 * @returns the answer, whatever its status; the caller reads its body or destroys it.
 * @throws {DownloadError} for redirects in a circle or to another kind of URL; else as the connection failed.
 */
export async function get(url: URL, options: GetOptions): Promise<IncomingMessage> {
  let target = url;
  for (let redirects = 0; redirects <= mostRedirects; redirects++) {
    const answer = await ask(target, options);
    const { location } = answer.headers;
    if (!redirectStatuses.has(answer.statusCode) || location === undefined) return answer;
    answer.destroy();
    const next = URL.parse(location, target.href);
    if (next === null || !/^https?:$/.test(next.protocol)) break;
    target = next;
  }
  throw new DownloadError("it is redirected in a circle, or to what is not fetched");
}

function ask(url: URL, options: GetOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = url.protocol === "https:" ? getByHttps(url, options, resolve) : getByHttp(url, options, resolve);
    sent.on("error", reject);
  });
}
