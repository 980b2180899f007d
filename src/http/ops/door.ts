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
 * davit does not check the sender's address, which proves nothing: a port-forward into a pod comes from loopback,
 * whoever uses it.
 */

import type { IncomingMessage } from "node:http";
import type { FastifyInstance } from "fastify";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { hostOf } from "../allowed-hosts.ts";
import { TokenFile, tokenChallenge, tokenOf } from "../bearer-tokens.ts";
import { RequestError } from "../errors.ts";

export interface OpsDoorOptions {
  /** Undefined if clients on davit's own computer need no token, and all others are refused. */
  readonly tokenFile: string | undefined;
  /** Returns the address that the listener is bound to; undefined before that. */
  readonly boundTo: () => string | undefined;
  /** True for a host that only davit's own computer can reach. An IPv6 address is passed without brackets. */
  readonly isLoopback: (host: string) => boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "opsUnauthorized">;
}

export class OpsDoor {
  readonly #options: OpsDoorOptions;
  readonly #tokens: TokenFile | undefined;

  private constructor(options: OpsDoorOptions, tokens: TokenFile | undefined) {
    this.#options = options;
    this.#tokens = tokens;
  }

  /**
   * Makes the door. If there is a token file, it is read, and watched for changes.
   * @throws {StartError} when the file cannot be used, or has no token.
   */
  static async open(options: OpsDoorOptions): Promise<OpsDoor> {
    const { tokenFile: path, clock, log } = options;
    const emptied = "no token is left, everybody is refused";
    return new OpsDoor(options, path === undefined ? undefined : await TokenFile.open({ path, emptied, clock, log }));
  }

  /** Guards every route that is added to this Fastify instance from now on. */
  guard(app: FastifyInstance): void {
    app.addHook("onRequest", (request, _reply, done) => {
      const refusal = this.#refusalOf(request.raw);
      if (refusal === undefined) return done();
      this.#options.metrics.opsUnauthorized.inc();
      done(refusal);
    });
  }

  /** Stops watching the token file. Idempotent. */
  stop(): void {
    this.#tokens?.stop();
  }

  #refusalOf({ headers }: IncomingMessage): RequestError | undefined {
    if (this.#tokens !== undefined) {
      const token = tokenOf(headers.authorization);
      if (token !== undefined && this.#tokens.holds(token)) return undefined;
      return new RequestError("noToken", { "www-authenticate": tokenChallenge });
    }
    if (!this.#options.isLoopback(this.#options.boundTo() ?? "")) return new RequestError("noTokenFile");
    const isLocal = !isForwarded(headers) && this.#options.isLoopback(hostOf(headers.host));
    return isLocal ? undefined : new RequestError("notLocal");
  }
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
function isForwarded(headers: IncomingMessage["headers"]): boolean {
  return Object.keys(headers).some((name) => proxyHeaders.has(name) || name.startsWith("x-forwarded"));
}
