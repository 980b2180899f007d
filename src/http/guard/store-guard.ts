/**
 * The row of the store's listener. Depending on the options, it asks for client certificates, bearer tokens of a file,
 * and tokens of a cluster's ServiceAccounts. Refused requests are logged: who asks without a right, or with an outdated
 * token. A line names the client and the reason, but no path, header or token, because a stranger writes these.
 */

import type { IncomingMessage } from "node:http";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { TokenBucket } from "../../lib/token-bucket.ts";
import { historyPath } from "../../model/history-batch.ts";
import { permitQuestions } from "../../model/permits/permit-wire.ts";
import { StoreError } from "../../store/core/refusal.ts";
import { pathEnd } from "../exchange.ts";
import type { Guard, GuardedRequest, GuardRow, RefusedRequest } from "./guard.ts";
import { AllowedHosts } from "./senders.ts";
import type { Access } from "./service-account-tokens.ts";
import { holdsToken, tokenDigest, tokenOf } from "./tokens.ts";

interface StoreGuardOptions {
  readonly tokenFile?: string | undefined;
  /** The certificate authorities of clients; undefined if clients need no certificate. */
  readonly clientCaFile?: string | undefined;
  /** The host of the URL that clients are given; undefined when none is configured. */
  readonly host?: string | undefined;
  /** Further names that clients may use on a listener without credentials. */
  readonly allowedHosts?: readonly string[];
  /**
   * Checks tokens of a cluster's ServiceAccounts. Some accounts may read and write, as with a token of the file; others
   * may only read.
   */
  readonly serviceAccounts?: GuardRow<StoreGuardRefusal, StoreError>["accounts"];
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "storeUnauthorized">;
}

const refusals = {
  unauthorized: ["unauthorized", "Insufficient credentials"],
  forbidden: ["forbidden", "this ServiceAccount may only read (--store-read-service-account)"],
  wrongHost: [
    "forbidden",
    "the request names a host that is not davit's: ask by an IP address, or give --store-allowed-host",
  ],
} as const;
type StoreGuardRefusal = keyof typeof refusals;

export type StoreGuard = Guard<StoreGuardRefusal, StoreError>;

// Supervisors request these without credentials. Neither reveals a key.
const openPaths = new Set(["/health", "/version"]);
const readingMethods: ReadonlySet<string | undefined> = new Set(["GET", "HEAD"]);
// Followers of version 0.2 send sightings again and again. A 404 answers them, and no refusal is logged and counted.
const earlierPath = "/davit/v1/sightings";
// Followers may only read. What they ask and report for their machines changes no key.
const followersPaths: ReadonlySet<string> = new Set([
  ...Object.values(permitQuestions).map(({ path }) => path),
  ...[historyPath, earlierPath],
]);

/** Makes the row. */
export function storeRow(options: StoreGuardOptions): GuardRow<StoreGuardRefusal, StoreError> {
  const { tokenFile, clientCaFile, host, allowedHosts = [], serviceAccounts, metrics } = options;
  const hosts = new AllowedHosts(host === undefined ? allowedHosts : [host, ...allowedHosts]);
  const asksForCertificate = clientCaFile !== undefined;
  const lines = new RefusalLog(options);
  return {
    tokenFiles: { read: tokenFile, write: tokenFile },
    emptied: "no token is left, every client is refused",
    accounts: serviceAccounts,
    asksForCertificate,
    missing: { read: "unauthorized", write: "unauthorized" },
    readsOnly: "forbidden",
    // A browser sends OPTIONS without credentials, before its actual request.
    isOpen: ({ method, url = "" }) => method === "OPTIONS" || openPaths.has(url.slice(0, pathEnd(url))),
    withoutToken: (headers) => (asksForCertificate || hosts.admits(headers.host) ? undefined : "wrongHost"),
    errorOf: (reason) => new StoreError(refusals[reason][0], refusals[reason][1], 0),
    refused: (request) => {
      metrics.storeUnauthorized.inc();
      lines.add(request);
    },
  };
}

/** Returns what a request needs on the store's listener. */
export function storeNeed({ method, url = "" }: Pick<GuardedRequest, "method" | "url">): Access {
  const isRead = readingMethods.has(method) || (method === "POST" && followersPaths.has(url.slice(0, pathEnd(url))));
  return isRead ? "read" : "write";
}

interface SecretsGuardOptions {
  /** True when the listener's guard asks for credentials. */
  readonly asksForCredentials: boolean;
  readonly isLoopback: boolean;
  /** The token that davit keeps in its data directory. */
  readonly localToken: string;
}

/** Returns why a request is refused; undefined if it may continue. */
export type SecretsGuard = (request: IncomingMessage) => StoreError | undefined;

/**
 * Decides who may read everything from the store's listener, even the texts of Secrets: the routes for followers and
 * backups. If the listener asks for credentials, they are checked already. Otherwise the listener must be on loopback,
 * and the request must have the local token of the data directory. Loopback is not enough: other users of the computer
 * reach it, too (docs/internals/decisions/0003-who-may-follow-a-store-and-when.md).
 */
export function secretsGuard({ asksForCredentials, isLoopback, localToken }: SecretsGuardOptions): SecretsGuard {
  if (asksForCredentials) return () => undefined;
  const why = "this store asks for no credentials, and shows no Secrets";
  const closed = `${why}: start it with --store-token-file or --store-client-ca-file`;
  if (!isLoopback) return () => new StoreError("forbidden", closed, 0);
  const digests = [tokenDigest(localToken)];
  return ({ headers }) => {
    const token = tokenOf(headers.authorization);
    if (token !== undefined && holdsToken(digests, token)) return undefined;
    return new StoreError("unauthorized", "this needs the local token of the data directory (--data-dir)", 0);
  };
}

/** A client that asks again and again gets a line for each reason in this time. */
const remindMs = 60_000;
const maxKnown = 1_000;
/** Of all clients together: ten at once, then twelve a minute. */
const lineRate = { perSecond: 0.2, burst: 10 };

/** Writes few lines of many refused requests. */
class RefusalLog {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #bucket: TokenBucket;
  /** Monotonic: when a client's last line was written, by client and reason. */
  readonly #written = new Map<string, number>();
  #unlogged = 0;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock;
    this.#log = log;
    this.#bucket = new TokenBucket({ clock, ...lineRate });
  }

  /** Logs a refused request, or counts it for the next line. */
  add(refused: RefusedRequest & { readonly reason: StoreGuardRefusal }): void {
    const key = `${refused.client} ${refused.reason}`;
    const nowMs = this.#clock.monotonicMs();
    const isKnown = nowMs - (this.#written.get(key) ?? Number.NEGATIVE_INFINITY) < remindMs;
    if (isKnown || !this.#bucket.tryTake()) {
      this.#unlogged += 1;
      return;
    }
    if (this.#written.size >= maxKnown) this.#written.clear();
    this.#written.set(key, nowMs);
    const unlogged = this.#unlogged > 0 ? { unlogged: this.#unlogged } : {};
    this.#unlogged = 0;
    this.#log.warn({ ...refused, ...unlogged }, "request refused");
  }
}
