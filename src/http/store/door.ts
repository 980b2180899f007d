/**
 * The door of the store listener. It checks the credentials of each request before any route sees the request.
 * Depending on the options, it accepts client certificates, bearer tokens of a file, and tokens of a cluster's
 * ServiceAccounts. The door also holds the TLS certificate of the listener.
 *
 * The door's files can change at any time. New connections get the new certificate, and the next request is checked
 * against the new tokens. A file that becomes unusable is ignored: davit continues with its last good content.
 *
 * If a token is removed before the body of an admitted request arrives, the request is still carried out. Watches and
 * streams are cut. Refusals never say which part of the credentials was wrong. Tokens of the file are compared in
 * constant time.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import type { Soon } from "../../lib/soon.ts";
import { historyPath } from "../../model/history-batch.ts";
import { permitQuestions } from "../../model/permits/permit-wire.ts";
import { sightingsPath } from "../../model/sighting.ts";
import { StoreError } from "../../store/core/refusal.ts";
import { AllowedHosts } from "../allowed-hosts.ts";
import { TokenFile, tokenOf } from "../bearer-tokens.ts";
import { hasValidCertificate, isForHost, namesOf, type ServerTls, type ServerTlsMaterial } from "../server-tls.ts";
import { pathEnd } from "../target.ts";
import { TlsFiles } from "../tls-files.ts";
import { RefusalLog } from "./refusal-log.ts";
import type { Access, ServiceAccountTokens } from "./service-account-tokens.ts";

export interface StoreDoorOptions {
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly clientCaFile?: string | undefined;
  readonly tokenFile?: string | undefined;
  /** The host of the URL that clients are given; undefined when none is configured. */
  readonly host?: string | undefined;
  /** Further names that clients may use on a listener without credentials. */
  readonly allowedHosts?: readonly string[];
  /**
   * Checks tokens of a cluster's ServiceAccounts. Some accounts may read and write, as with a token of the file; others
   * may only read.
   */
  readonly serviceAccounts?: Pick<ServiceAccountTokens, "known" | "accessOf"> | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "storeUnauthorized">;
}

// Supervisors request these without credentials. Neither reveals a key.
const openPaths = new Set(["/health", "/version"]);
const readingMethods: ReadonlySet<string | undefined> = new Set(["GET", "HEAD"]);
// Followers may only read. What they ask and report for their machines changes no key.
const followersPaths: ReadonlySet<string> = new Set([
  ...Object.values(permitQuestions).map(({ path }) => path),
  ...[sightingsPath, historyPath],
]);

const expiryCheckMs = 1_000;
/** In place of the token of a client that is admitted by its certificate alone. */
const noToken = "";

/** Whether a request is admitted; if not, the reason. */
type DoorVerdict = "admitted" | "unauthorized" | "forbidden" | "wrongHost";

export class StoreDoor {
  readonly #options: StoreDoorOptions;
  readonly #hosts: AllowedHosts;
  /**
   * Long-lived answers, by the token that admitted them. A watch can last for days, and its token can become invalid
   * meanwhile.
   */
  readonly #open = new Map<string, Set<ServerResponse>>();
  readonly #refusals: RefusalLog;
  readonly #stopping = new AbortController();
  #tlsFiles: TlsFiles | undefined;
  #tokens: TokenFile | undefined;

  private constructor(options: StoreDoorOptions) {
    this.#options = options;
    this.#refusals = new RefusalLog(options);
    const { host, allowedHosts = [] } = options;
    this.#hosts = new AllowedHosts(host === undefined ? allowedHosts : [host, ...allowedHosts]);
  }

  /**
   * Makes the door: reads its files, and watches them for changes.
   * @throws {StartError} when a file cannot be used.
   */
  static async open(options: StoreDoorOptions): Promise<StoreDoor> {
    const door = new StoreDoor(options);
    try {
      await door.#openTls();
      await door.#openTokens();
    } catch (error) {
      door.stop();
      throw error;
    }
    return door;
  }

  /** Undefined for a door without TLS. */
  get tls(): ServerTls | undefined {
    return this.#tlsFiles?.tls;
  }

  /** True when every client needs a certificate or a token. */
  get asksForCredentials(): boolean {
    return this.#asksForToken || this.#options.clientCaFile !== undefined;
  }

  get #asksForToken(): boolean {
    return this.#tokens !== undefined || this.#options.serviceAccounts !== undefined;
  }

  /**
   * Returns why a request is refused; undefined if it is admitted. Most requests are admitted without a promise. TLS
   * lets no connection in without a client certificate, but does not see that it expires later.
   */
  refusalOf(request: IncomingMessage): Soon<StoreError | undefined> {
    if (this.#admits(request)) return undefined;
    // Read now, because a closed socket no longer has its address.
    const client = request.socket.remoteAddress;
    return this.#judge(request).then((verdict) => {
      if (verdict === "admitted") return undefined;
      this.#options.metrics.storeUnauthorized.inc();
      this.#refusals.add({ client, method: request.method, reason: verdict });
      const [refusal, cause] = refusals[verdict];
      return new StoreError(refusal, cause, 0);
    });
  }

  /** True if a request can be admitted without a promise. Otherwise `#judge` decides. */
  #admits(request: IncomingMessage): boolean {
    const { method, url = "", headers } = request;
    if (this.#hasExpired(request)) return false;
    if (!this.#asksForToken) return this.asksForCredentials || this.#hosts.admits(headers.host);
    // A browser sends OPTIONS without credentials, before its actual request.
    if (method === "OPTIONS" || openPaths.has(url.slice(0, pathEnd(url)))) return true;
    const token = tokenOf(headers.authorization);
    if (token === undefined) return false;
    return (
      this.#tokens?.holds(token) === true || isEnough(this.#options.serviceAccounts?.known(token), { method, url })
    );
  }

  /** Decides on a request that `#admits` has not admitted. */
  async #judge(request: IncomingMessage): Promise<DoorVerdict> {
    const { method, url, headers } = request;
    if (this.#hasExpired(request)) return "unauthorized";
    if (!this.#asksForToken) return "wrongHost";
    const token = tokenOf(headers.authorization);
    const access = token === undefined ? undefined : await this.#options.serviceAccounts?.accessOf(token);
    if (access === undefined) return "unauthorized";
    return isEnough(access, { method, url }) ? "admitted" : "forbidden";
  }

  #hasExpired(request: IncomingMessage): boolean {
    const { clientCaFile, clock } = this.#options;
    return clientCaFile !== undefined && !hasValidCertificate(request, clock.nowMs());
  }

  /** Registers a long-lived answer. It is cut when the request's token is removed, or token or certificate expire. */
  follow({ headers }: IncomingMessage, response: ServerResponse): void {
    const given = this.#asksForToken ? tokenOf(headers.authorization) : undefined;
    const token = given ?? (this.#options.clientCaFile === undefined ? undefined : noToken);
    // Perhaps the client disconnected before its answer was ready.
    if (token === undefined || response.destroyed) return;
    if (!this.#isKnown(token)) return void response.destroy();
    const open = this.#open.get(token) ?? new Set();
    this.#open.set(token, open.add(response));
    response.once("close", () => {
      open.delete(response);
      if (open.size === 0) this.#open.delete(token);
    });
  }

  /** Stops watching the files. Idempotent. */
  stop(): void {
    this.#stopping.abort();
    this.#tlsFiles?.stop();
    this.#tokens?.stop();
  }

  /**
   * Cuts the answers of tokens and certificates that are no longer valid. It checks each token once, even if the token
   * has many answers.
   */
  #cutRevoked(): void {
    for (const [token, open] of this.#open) {
      const isKnown = this.#isKnown(token);
      for (const response of open) if (!isKnown || this.#hasExpired(response.req)) response.destroy();
    }
  }

  #isKnown(token: string): boolean {
    if (token === noToken) return true;
    return this.#tokens?.holds(token) === true || this.#options.serviceAccounts?.known(token) !== undefined;
  }

  /** Looks every second, because the token of a ServiceAccount and a certificate expire without an event. */
  async #watchExpiry(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await clock.sleep(expiryCheckMs, signal);
      this.#cutRevoked();
    }
  }

  async #openTls(): Promise<void> {
    const { certFile, keyFile, clientCaFile, clock, log } = this.#options;
    if (certFile === undefined || keyFile === undefined) return;
    const accept = (material: ServerTlsMaterial) => this.#warnOf(material);
    this.#tlsFiles = await TlsFiles.open({ certFile, keyFile, clientCaFile, clients: "programs", accept, clock, log });
  }

  async #openTokens(): Promise<void> {
    const { tokenFile, clientCaFile, clock, log, serviceAccounts } = this.#options;
    if (serviceAccounts !== undefined || clientCaFile !== undefined) void this.#watchExpiry();
    if (tokenFile === undefined) return;
    const emptied = "no token is left, every client is refused";
    const changed = () => this.#cutRevoked();
    this.#tokens = await TokenFile.open({ path: tokenFile, emptied, changed, clock, log });
  }

  /** Logs a warning if clients will refuse the certificate. */
  #warnOf({ cert, expiresAtMs }: ServerTlsMaterial): void {
    const { clock, log, certFile: path, host } = this.#options;
    if (expiresAtMs <= clock.nowMs()) log.warn({ path }, "certificate has expired, clients will refuse it");
    if (host === undefined || isForHost(cert, host)) return;
    const problem = "certificate is not for the host of --store-advertise-url, clients that come by it will refuse it";
    log.warn({ path, host, names: namesOf(cert) }, problem);
  }
}

const refusals = {
  unauthorized: ["unauthorized", "Insufficient credentials"],
  forbidden: ["forbidden", "this ServiceAccount may only read (--store-read-service-account)"],
  wrongHost: [
    "forbidden",
    "the request names a host that is not davit's: ask by an IP address, or give --allowed-host",
  ],
} as const;

/**
 * True if the access permits the request. Reads need any access, and so do the requests of followers. Every other
 * method needs write access.
 */
function isEnough(access: Access | undefined, { method, url = "" }: Pick<IncomingMessage, "method" | "url">): boolean {
  const isRead = readingMethods.has(method) || (method === "POST" && followersPaths.has(url.slice(0, pathEnd(url))));
  return access === "write" || (access === "read" && isRead);
}
