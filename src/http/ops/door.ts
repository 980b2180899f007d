/**
 * The door of what the operations listener shows of machines and their configs. Health, version and metrics are open to
 * whoever reaches the listener; a config may hold what is nobody else's business.
 *
 * With a file of tokens, each request needs one of them, wherever it comes from. Without, only who asks on this very
 * machine gets in: the listener is bound to a loopback address, no proxy stands between, and the request names a loopback
 * address, so that no web page can ask under a name of its own. Where a request comes from is never asked: a port-forward
 * into a pod arrives from loopback whoever uses it.
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
  /** Undefined: who asks on this machine needs no token, and everybody else is refused. */
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

  /** Puts the door in front of every route that this instance gets from now on. */
  guard(app: FastifyInstance): void {
    app.addHook("onRequest", (request, _reply, done) => {
      const refusal = this.#refusalOf(request.raw);
      if (refusal === undefined) return done();
      this.#options.metrics.opsUnauthorized.inc();
      done(refusal);
    });
  }

  /** Follows its file no longer; idempotent. */
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
        // Whoever empties the file wants nobody to get in.
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
 * What proxies write beside `X-Forwarded-*`: of the standards, of nginx, HAProxy and Envoy, and of those who run networks.
 * None of them is a header of a program that asks by itself.
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
