/**
 * The row of the operations listener: it guards the routes that show machines and their configs, because a config may
 * be confidential. Health, version and metrics are open to everyone who reaches the listener.
 *
 * With a token file, each request needs one of its tokens, wherever the request comes from. Without a token file, only
 * clients on davit's own computer are admitted:
 * - The listener must be bound to a loopback address.
 * - The request must not have passed a proxy.
 * - The `Host` header must name a loopback address. If a web page makes its own host name resolve to loopback, the
 *   header has that name, and the request is refused.
 *
 * Routes that change the ledger need more: the header `X-Davit-Action`, no sign of a web page, and a token of the admin
 * token file. Without that file, they need what reading needs, and davit's own computer.
 *
 * davit does not check the sender's address, which proves nothing: a port-forward into a pod comes from loopback,
 * whoever uses it.
 */

import type { Metrics } from "../../lib/metrics/metrics.ts";
import { isLoopback } from "../../lib/text/address.ts";
import { RequestError } from "../errors.ts";
import { pathEnd } from "../exchange.ts";
import type { Guard, GuardedRequest, GuardRow } from "./guard.ts";
import { hostOf, isForwarded } from "./senders.ts";
import { tokenChallenge } from "./tokens.ts";

interface OpsGuardOptions {
  /** Undefined if clients on davit's own computer need no token, and all others are refused. */
  readonly tokenFile: string | undefined;
  /** The tokens for changes, which also read; undefined if readers on davit's own computer may change. */
  readonly adminTokenFile: string | undefined;
  /** Returns the address that the listener is bound to; undefined before that. */
  readonly boundTo: () => string | undefined;
  readonly metrics: Pick<Metrics, "opsUnauthorized">;
}

/** A request for a change has this header, with the last name of its path as the value. */
const actionHeader = "x-davit-action";

const refusals = {
  noToken: { "www-authenticate": tokenChallenge },
  noAdminToken: { "www-authenticate": tokenChallenge },
  noTokenFile: {},
  noAdminTokenFile: {},
  notLocal: {},
  notLocalChange: {},
  fromWebPage: {},
  noAction: {},
} as const;
type OpsRefusal = keyof typeof refusals;

export type OpsGuard = Guard<OpsRefusal, RequestError>;

/** Makes the row. */
export function opsRow(options: OpsGuardOptions): GuardRow<OpsRefusal, RequestError> {
  const { tokenFile, adminTokenFile, boundTo, metrics } = options;
  return {
    tokenFiles: { read: tokenFile, write: adminTokenFile },
    emptied: "no token is left, everybody is refused",
    missing: { read: "noToken", write: "noAdminToken" },
    readsOnly: "noAdminToken",
    never: (request, need) => (need === "write" ? webRefusal(request) : undefined),
    withoutToken: (headers, need) => {
      const isChange = need === "write";
      if (!isLoopback(boundTo() ?? "")) return isChange ? "noAdminTokenFile" : "noTokenFile";
      const isLocal = !isForwarded(headers) && isLoopback(hostOf(headers.host));
      if (isLocal) return undefined;
      return isChange ? "notLocalChange" : "notLocal";
    },
    errorOf: (reason) => new RequestError(reason, refusals[reason]),
    refused: () => metrics.opsUnauthorized.inc(),
  };
}

/**
 * Refuses requests of web pages, also with a token: a browser repeats the password of Basic for any page. A page can
 * send neither `X-Davit-Action` nor JSON to another origin before davit permits it, and davit never does. Browsers also
 * name the page's origin.
 */
function webRefusal({ headers, url = "" }: GuardedRequest): OpsRefusal | undefined {
  const { origin, referer, [actionHeader]: action } = headers;
  const site = headers["sec-fetch-site"];
  if ((origin ?? referer ?? site) !== undefined) return "fromWebPage";
  const lastName = url.slice(0, pathEnd(url)).split("/").at(-1);
  return action !== undefined && action === lastName ? undefined : "noAction";
}
