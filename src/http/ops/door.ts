/**
 * Guards the routes of the operations listener that show machines and their configs, because a config may be
 * confidential. Health, version and metrics are open to everyone who reaches the listener.
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

import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { FastifyInstance } from "fastify";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { hostOf } from "../allowed-hosts.ts";
import { TokenFile, tokenChallenge, tokenOf } from "../bearer-tokens.ts";
import { RequestError } from "../errors.ts";
import { pathEnd } from "../target.ts";

export interface OpsDoorOptions {
  /** Undefined if clients on davit's own computer need no token, and all others are refused. */
  readonly tokenFile: string | undefined;
  /** The tokens for changes, which also read; undefined if readers on davit's own computer may change. */
  readonly adminTokenFile: string | undefined;
  /** Returns the address that the listener is bound to; undefined before that. */
  readonly boundTo: () => string | undefined;
  /** True for a host that only davit's own computer can reach. An IPv6 address is passed without brackets. */
  readonly isLoopback: (host: string) => boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "opsUnauthorized">;
}

/** A request for a change has this header, with the last name of its path as the value. */
const actionHeader = "x-davit-action";

interface DoorTokens {
  readonly reading: TokenFile | undefined;
  readonly changing: TokenFile | undefined;
}

/** What a client may do that may read. */
export interface OpsRights {
  /** True if it is admitted by a token of a token file. */
  readonly hasToken: boolean;
  readonly mayChange: boolean;
}

export class OpsDoor {
  readonly #options: OpsDoorOptions;
  readonly #tokens: DoorTokens;

  private constructor(options: OpsDoorOptions, tokens: DoorTokens) {
    this.#options = options;
    this.#tokens = tokens;
  }

  /**
   * Makes the door. If there are token files, they are read, and watched for changes.
   * @throws {StartError} when a file cannot be used, or has no token.
   */
  static async open(options: OpsDoorOptions): Promise<OpsDoor> {
    const { tokenFile, adminTokenFile, clock, log } = options;
    const emptied = "no token is left, everybody is refused";
    const open = async (path: string | undefined) =>
      path === undefined ? undefined : await TokenFile.open({ path, emptied, clock, log });
    const reading = await open(tokenFile);
    try {
      return new OpsDoor(options, { reading, changing: await open(adminTokenFile) });
    } catch (error) {
      reading?.stop();
      throw error;
    }
  }

  /** Guards every route that is added to this Fastify instance from now on. */
  guard(app: FastifyInstance): void {
    this.#guard(app, ({ headers }) => this.#readingRefusal(headers));
  }

  /** As `guard`, for routes that change something. */
  guardChanges(app: FastifyInstance): void {
    this.#guard(app, ({ headers, url = "" }) => this.#webRefusal(headers, url) ?? this.#changingRefusal(headers));
  }

  /** Returns what the sender of these headers may do; a refusal if it may not even read. */
  rightsOf(headers: IncomingHttpHeaders): OpsRights | RequestError {
    const { reading, changing } = this.#tokens;
    const refusal = this.#readingRefusal(headers);
    if (refusal !== undefined) return refusal;
    const hasToken = holds(changing, headers) || holds(reading, headers);
    return { hasToken, mayChange: this.#changingRefusal(headers) === undefined };
  }

  /** Stops watching the token files. Idempotent. */
  stop(): void {
    this.#tokens.reading?.stop();
    this.#tokens.changing?.stop();
  }

  #guard(app: FastifyInstance, refusalOf: (request: IncomingMessage) => RequestError | undefined): void {
    app.addHook("onRequest", (request, _reply, done) => {
      const refusal = refusalOf(request.raw);
      if (refusal === undefined) return done();
      this.#options.metrics.opsUnauthorized.inc();
      done(refusal);
    });
  }

  #readingRefusal(headers: IncomingHttpHeaders): RequestError | undefined {
    const { reading, changing } = this.#tokens;
    if (holds(changing, headers)) return undefined;
    if (reading !== undefined) return holds(reading, headers) ? undefined : challenge("noToken");
    if (!this.#options.isLoopback(this.#options.boundTo() ?? "")) return new RequestError("noTokenFile");
    return this.#isLocal(headers) ? undefined : new RequestError("notLocal");
  }

  /** Without tokens for changes, a change needs everything: a token if reading needs one, and davit's own computer. */
  #changingRefusal(headers: IncomingHttpHeaders): RequestError | undefined {
    const { changing } = this.#tokens;
    if (changing !== undefined) return holds(changing, headers) ? undefined : challenge("noAdminToken");
    if (!this.#options.isLoopback(this.#options.boundTo() ?? "")) return new RequestError("noAdminTokenFile");
    if (!this.#isLocal(headers)) return new RequestError("notLocalChange");
    return this.#readingRefusal(headers);
  }

  /**
   * Refuses requests of web pages, also with a token: a browser repeats the password of Basic for any page. A page can
   * send neither `X-Davit-Action` nor JSON to another origin before davit permits it, and davit never does. Browsers
   * also name the page's origin.
   */
  #webRefusal(headers: IncomingHttpHeaders, url: string): RequestError | undefined {
    const { origin, referer, [actionHeader]: action } = headers;
    const site = headers["sec-fetch-site"];
    if ((origin ?? referer ?? site) !== undefined) return new RequestError("fromWebPage");
    const lastName = url.slice(0, pathEnd(url)).split("/").at(-1);
    return action !== undefined && action === lastName ? undefined : new RequestError("noAction");
  }

  #isLocal(headers: IncomingHttpHeaders): boolean {
    return !isForwarded(headers) && this.#options.isLoopback(hostOf(headers.host));
  }
}

function holds(tokens: TokenFile | undefined, { authorization }: IncomingHttpHeaders): boolean {
  const token = tokens && tokenOf(authorization);
  return token !== undefined && tokens?.holds(token) === true;
}

function challenge(reason: "noToken" | "noAdminToken"): RequestError {
  return new RequestError(reason, { "www-authenticate": tokenChallenge });
}

/**
 * Headers of proxies besides `X-Forwarded-*`: from standards, nginx, HAProxy, Envoy and network operators. No client
 * without a proxy sends any of them.
 */
const proxyHeaders: ReadonlySet<string> = new Set([
  "forwarded",
  "via",
  "x-real-ip",
  "x-client-ip",
  "client-ip",
  "true-client-ip",
  "cf-connecting-ip",
  "x-cluster-client-ip",
  "x-original-forwarded-for",
  "x-original-host",
  "x-envoy-external-address",
]);

/** True for a request that a proxy passed on, perhaps from another computer. */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  return Object.keys(headers).some((name) => proxyHeaders.has(name) || name.startsWith("x-forwarded"));
}
