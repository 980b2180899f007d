/**
 * The door of the operations listener, for routes that show machines and their configs. Health, version and metrics are
 * open to everyone who reaches the listener; a config may be confidential.
 *
 * With a token file, each request needs one of its tokens, wherever it comes from. Without one, only clients on this
 * machine get in: the listener is bound to a loopback address, the request has passed no proxy, and it names a loopback
 * address, so that no web page can ask under its own name. The request's origin proves nothing: a port-forward into a
 * pod arrives from loopback whoever uses it.
 */

import type { IncomingMessage } from "node:http";
import type { FastifyInstance } from "fastify";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { StartError } from "../../lib/start-error.ts";
import { WatchedFiles } from "../../lib/watched-files.ts";
import { hostOf } from "../allowed-hosts.ts";
import { holdsToken, readTokenDigests, type TokenDigest, tokenChallenge, tokenOf } from "../bearer-tokens.ts";
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
  #tokens: readonly TokenDigest[] | undefined;
  #files: { stop(): void } | undefined;

  private constructor(options: OpsDoorOptions) {
    this.#options = options;
  }

  /**
   * Reads the file of tokens, if there is one, and follows it.
   * @throws {StartError} when it cannot be used, or has no token.
   */
  static async open(options: OpsDoorOptions): Promise<OpsDoor> {
    const door = new OpsDoor(options);
    try {
      await door.#openTokens();
    } catch (error) {
      door.stop();
      throw error;
    }
    return door;
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
    this.#files?.stop();
  }

  #refusalOf({ headers }: IncomingMessage): RequestError | undefined {
    if (this.#tokens !== undefined) {
      const token = tokenOf(headers.authorization);
      if (token !== undefined && holdsToken(this.#tokens, token)) return undefined;
      return new RequestError("noToken", { "www-authenticate": tokenChallenge });
    }
    if (!this.#options.isLoopback(this.#options.boundTo() ?? "")) return new RequestError("noTokenFile");
    const isLocal = !isForwarded(headers) && this.#options.isLoopback(hostOf(headers.host));
    return isLocal ? undefined : new RequestError("notLocal");
  }

  async #openTokens(): Promise<void> {
    const { tokenFile, clock, log } = this.#options;
    if (tokenFile === undefined) return;
    const files = new WatchedFiles({
      paths: [tokenFile],
      secretPaths: [tokenFile],
      parse: ([text = ""]) => readTokenDigests(text),
      changed: (tokens) => {
        this.#tokens = tokens;
        // An operator who empties the file wants nobody to get in.
        if (tokens.length === 0) log.warn({ path: tokenFile }, "no token is left, everybody is refused");
      },
      clock,
      log,
    });
    this.#files = files;
    this.#tokens = await files.start();
    if (this.#tokens.length === 0) throw new StartError(`Cannot use "${tokenFile}": it has no token`);
  }
}

/**
 * Headers of proxies beside `X-Forwarded-*`: of the standards, of nginx, HAProxy and Envoy, and of networks' operators.
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
