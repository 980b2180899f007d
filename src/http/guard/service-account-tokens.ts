/**
 * Checks tokens of a cluster's ServiceAccounts, which davit's own followers send. The cluster must have signed the
 * token, with davit as its audience. The token must not have expired, and must belong to an allowed account.
 *
 * davit checks tokens itself with the cluster's public keys, so followers can connect while the API server is away. For
 * the same reason it stores the keys on disk. Only the API server knows that a token's pod or account was deleted, and
 * davit does not ask it. Such a token stays valid until it expires, by default within an hour.
 */

import { hash } from "node:crypto";
import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from "jose";
import { type Clock, dateOf } from "../../lib/clock.ts";
import { codeOf, messageOf } from "../../lib/errors.ts";
import type { Files } from "../../lib/files/files.ts";
import { writeWholeFile } from "../../lib/files/whole-file.ts";
import type { Log } from "../../lib/log.ts";
import type { TokenKeys } from "../../model/cluster-trust.ts";
import { isJsonObject, parseJsonObject } from "../../model/json.ts";

interface ServiceAccountTokensOptions {
  /** Accounts that may read and write, each as `NAMESPACE/NAME`. */
  readonly allowed: readonly string[];
  /** Accounts that may only read, unless `allowed` names them too. */
  readonly reading: readonly string[];
  /** The audience (`aud`) that a token must have. */
  readonly audience: string;
  /** Fetches the keys from the cluster. @throws {Error} while the cluster does not answer. */
  readonly fetchKeys: () => Promise<TokenKeys>;
  readonly files: Files;
  /** The directory in which the keys are stored. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** What a client may do, and what a request needs. Who may write may also read. */
export type Access = "read" | "write";

interface KnownToken {
  readonly access: Access;
  /** Unix milliseconds. */
  readonly expiresAtMs: number;
}

const fileName = "service-account-keys.json";
/** How often the keys are fetched. While the cluster answers, a withdrawn key stays valid for at most this long. */
const refreshMs = 10 * 60_000;
/** A token with an unknown key makes davit fetch the keys again, but not sooner than this after the last fetch. */
const unknownKeyPauseMs = 10_000;
/** How much the clocks of a cluster's nodes may differ. */
const clockToleranceSeconds = 10;
/**
 * The algorithms with which API servers sign (kube-apiserver --service-account-signing-key-file takes RSA and ECDSA
 * keys).
 */
const algorithms = ["RS256", "ES256", "ES384", "ES512"];
/** The most accepted tokens to remember: more than the followers that a store takes. */
const maxKnown = 1_024;

export class ServiceAccountTokens {
  readonly #options: ServiceAccountTokensOptions;
  readonly #stopping = new AbortController();
  readonly #subjects: ReadonlyMap<string, Access>;
  /** Accepted tokens, by their digests. */
  readonly #known = new Map<string, KnownToken>();
  #keys: TokenKeys | undefined;
  #fetching: Promise<void> | undefined;
  #refreshing: Promise<void> | undefined;
  #fetchedAtMs = Number.NEGATIVE_INFINITY;
  #problem = "";

  constructor(options: ServiceAccountTokensOptions) {
    this.#options = options;
    const subjects = (names: readonly string[], access: Access) =>
      names.map((name) => [`system:serviceaccount:${name.replace("/", ":")}`, access] as const);
    // A later entry replaces an earlier one, so an account in both lists may write.
    this.#subjects = new Map([...subjects(options.reading, "read"), ...subjects(options.allowed, "write")]);
  }

  /** Reads the stored keys, and begins to fetch new ones. Resolves without waiting for a fetch. */
  async start(): Promise<void> {
    this.#keys = await this.#readKept();
    this.#refreshing = this.#refresh();
  }

  /** Stops fetching keys. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#refreshing;
  }

  /** The access of a token that was checked before and has not expired; undefined for any other. */
  known(token: string): Access | undefined {
    const known = this.#known.get(digestOf(token));
    return known !== undefined && known.expiresAtMs > this.#options.clock.nowMs() ? known.access : undefined;
  }

  /** Returns the access of a token; undefined for an invalid one. It never throws. */
  async accessOf(token: string): Promise<Access | undefined> {
    const known = this.known(token);
    if (known !== undefined || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return known;
    if ((await this.#judge(token)) !== "unknownKey") return this.known(token);
    const sinceMs = this.#options.clock.monotonicMs() - this.#fetchedAtMs;
    if (this.#fetching === undefined && sinceMs < unknownKeyPauseMs) return undefined;
    await this.#fetch();
    await this.#judge(token);
    return this.known(token);
  }

  async #judge(token: string): Promise<"judged" | "unknownKey"> {
    const { audience, clock } = this.#options;
    if (this.#keys === undefined) return "unknownKey";
    try {
      const { payload } = await jwtVerify(token, createLocalJWKSet(keySet(this.#keys)), {
        algorithms,
        audience,
        issuer: this.#keys.issuer,
        clockTolerance: clockToleranceSeconds,
        currentDate: dateOf(clock.nowMs()),
        requiredClaims: ["exp", "sub"],
      });
      const { sub = "", exp = 0 } = payload;
      const access = this.#subjects.get(sub);
      if (access !== undefined) this.#remember(token, { access, expiresAtMs: exp * 1_000 });
      return "judged";
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return "unknownKey";
      // The token is invalid, which concerns only its sender.
      return "judged";
    }
  }

  #remember(token: string, known: KnownToken): void {
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size >= maxKnown) this.#known.delete(oldest);
    this.#known.set(digestOf(token), known);
  }

  async #refresh(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stopping.signal.aborted) {
      await this.#fetch();
      await clock.sleep(refreshMs, this.#stopping.signal);
    }
  }

  /** Fetches the keys, one fetch at a time. A failure that repeats is logged once. */
  async #fetch(): Promise<void> {
    this.#fetching ??= this.#fetchNow().finally(() => {
      this.#fetching = undefined;
    });
    await this.#fetching;
  }

  async #fetchNow(): Promise<void> {
    const { fetchKeys, clock, log, files, directory } = this.#options;
    this.#fetchedAtMs = clock.monotonicMs();
    try {
      const keys = await fetchKeys();
      this.#problem = "";
      const text = JSON.stringify(keys);
      if (text === JSON.stringify(this.#keys)) return;
      this.#keys = keys;
      // Tokens that withdrawn keys have signed lose their access.
      this.#known.clear();
      await writeWholeFile(files, directory, fileName, [Buffer.from(text)]);
      log.info({ keys: keys.keys.length }, "keys of ServiceAccounts read");
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      const problem = messageOf(error);
      if (problem !== this.#problem)
        log.warn({ problem, hasOld: this.#keys !== undefined }, "cannot read the keys of ServiceAccounts");
      this.#problem = problem;
    }
  }

  /**
   * Returns the keys on disk; undefined when there are none, or they cannot be read. Then no token is accepted before a
   * fetch succeeds.
   */
  async #readKept(): Promise<TokenKeys | undefined> {
    const { files, directory, log } = this.#options;
    try {
      const kept = parseJsonObject((await files.read(`${directory}/${fileName}`)).toString("utf8"));
      const { issuer, keys } = kept ?? {};
      return typeof issuer === "string" && Array.isArray(keys)
        ? { issuer, keys: keys.filter(isJsonObject) }
        : undefined;
    } catch (error) {
      if (codeOf(error) !== "ENOENT") log.warn({ code: codeOf(error) }, "cannot read the kept keys of ServiceAccounts");
      return undefined;
    }
  }
}

function keySet({ keys }: TokenKeys): JSONWebKeySet {
  return { keys: keys.map((key) => ({ ...key })) };
}

function digestOf(token: string): string {
  return hash("sha256", token, "base64");
}
