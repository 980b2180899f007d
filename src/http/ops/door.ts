/**
 * The door of the operations listener, for routes that show machines and their configs. Health, version and metrics are
 * open to everyone who reaches the listener; a config may be confidential.
 *
 * With a token file, each request needs one of its tokens, wherever it comes from. Without one, only clients on this
 * machine are admitted: the listener must be bound to a loopback address, the request must have passed no proxy, and it
 * must name a loopback address, which excludes web pages under other names. The sender's address proves nothing: a
 * port-forward into a pod arrives from loopback, whoever uses it.
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
  /** Undefined: clients on this machine need no token, and all others are refused. */
  readonly tokenFile: string | undefined;
  /** The address that the listener is bound to; undefined until it is. */
  readonly boundTo: () => string | undefined;
  /** True for a host that only this machine reaches; IPv6 comes without brackets. */
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
   * Reads the file of tokens, if there is one, and follows it.
   * @throws {StartError} when it cannot be used, or has no token.
   */
  static async open(options: OpsDoorOptions): Promise<OpsDoor> {
    const { tokenFile: path, clock, log } = options;
    const emptied = "no token is left, everybody is refused";
    return new OpsDoor(options, path === undefined ? undefined : await TokenFile.open({ path, emptied, clock, log }));
  }

  /** Guards every route that is added to this instance from now on. */
  guard(app: FastifyInstance): void {
    app.addHook("onRequest", (request, _reply, done) => {
      const refusal = this.#refusalOf(request.raw);
      if (refusal === undefined) return done();
      this.#options.metrics.opsUnauthorized.inc();
      done(refusal);
    });
  }

  /** Stops following the file; idempotent. */
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
 * Other headers of proxies: from standards, nginx, HAProxy, Envoy and network operators.
 * No direct client sends any of them.
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

/** True for a request that a proxy passed on, perhaps from another machine. */
function isForwarded(headers: IncomingMessage["headers"]): boolean {
  return Object.keys(headers).some((name) => proxyHeaders.has(name) || name.startsWith("x-forwarded"));
}
