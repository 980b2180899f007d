/**
 * Decides what the sender of a request may do on a listener, before any route sees the request. A listener is a row:
 *
 * | what a client has | operations (`ops-guard.ts`) | store (`store-guard.ts`) |
 * |---|---|---|
 * | a token of the token file | reads; changes, too, without an admin token file, on davit's own computer | all |
 * | a token of the admin token file | reads and changes | |
 * | a token of a ServiceAccount | | all, or reads and what followers send |
 * | a client certificate | | all if no token is asked for; always needed if it is asked for |
 * | nothing, where nothing is asked for | reads and changes, on davit's own computer | all but Secrets, by its host |
 * | the local token, where nothing is asked for | | also Secrets, on loopback |
 *
 * Files of tokens can change at any time, and the next request is checked against the new tokens. A file that becomes
 * unusable is ignored: davit continues with its last good content. If a token is removed before the body of an admitted
 * request arrives, the request is still carried out. Watches and streams are cut. Refusals never say which part of the
 * credentials was wrong.
 */

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Soon } from "../../lib/soon.ts";
import { hasValidCertificate } from "../server-tls.ts";
import type { Access, ServiceAccountTokens } from "./service-account-tokens.ts";
import { holdsToken, openTokens, type TokenFile, tokenOf } from "./tokens.ts";

/** The parts of a request that the guard looks at. */
export type GuardedRequest = Pick<IncomingMessage, "headers" | "method" | "url" | "socket">;

export interface GuardRow<Reason extends string, Refusal extends Error> {
  /** Files of tokens by what they permit. Undefined: no token is asked for that need. */
  readonly tokenFiles: Readonly<Record<Access, string | undefined>>;
  /** The warning to log when a change of a file removes its last token. */
  readonly emptied: string;
  /** Checks tokens of a cluster's ServiceAccounts. */
  readonly accounts?: Pick<ServiceAccountTokens, "known" | "accessOf"> | undefined;
  /** True if TLS lets no connection in without a client certificate. */
  readonly asksForCertificate?: boolean;
  /** Why a request without the needed credential is refused. */
  readonly missing: Readonly<Record<Access, Reason>>;
  /** Why a ServiceAccount is refused that may only read. */
  readonly readsOnly: Reason;
  /** Why a request is refused whatever its credentials are. */
  readonly never?: (request: GuardedRequest, need: Access) => Reason | undefined;
  /** True for a request that needs no token. */
  readonly isOpen?: (request: GuardedRequest) => boolean;
  /** Why a request is refused although no token is asked for. */
  readonly withoutToken: (headers: IncomingHttpHeaders, need: Access) => Reason | undefined;
  readonly errorOf: (reason: Reason) => Refusal;
  /** Counts a refused request. */
  readonly refused: (request: RefusedRequest & { readonly reason: Reason }) => void;
}

/** What the sender of a request may do that may read. */
interface Rights {
  /** True if it is admitted by a token of a token file. */
  readonly hasToken: boolean;
  readonly mayChange: boolean;
}

export interface RefusedRequest {
  /** The client's address; undefined if the client is gone. */
  readonly client: string | undefined;
  readonly method: string | undefined;
}

const expiryCheckMs = 1_000;
/** In place of the token of a client that is admitted by its certificate alone. */
const noToken = "";

export class Guard<Reason extends string, Refusal extends Error> {
  readonly #row: GuardRow<Reason, Refusal>;
  readonly #clock: Clock;
  /**
   * Long-lived answers, by the token that admitted them. A watch can last for days, and its token can become invalid
   * meanwhile.
   */
  readonly #open = new Map<string, Set<ServerResponse>>();
  readonly #stopping = new AbortController();
  readonly #tokens: Record<Access, TokenFile | undefined> = { read: undefined, write: undefined };

  private constructor(row: GuardRow<Reason, Refusal>, clock: Clock) {
    this.#row = row;
    this.#clock = clock;
  }

  /**
   * Makes the guard of a listener. The token files are read, and watched for changes.
   * @throws {StartError} when a file cannot be used, or has no token.
   */
  static async open<Reason extends string, Refusal extends Error>(
    row: GuardRow<Reason, Refusal>,
    around: { readonly clock: Clock; readonly log: Log },
  ): Promise<Guard<Reason, Refusal>> {
    const guard = new Guard(row, around.clock);
    try {
      await guard.#openTokens(around);
    } catch (error) {
      guard.stop();
      throw error;
    }
    return guard;
  }

  /** True when every client needs a certificate or a token. */
  get asksForCredentials(): boolean {
    return this.#asksForToken("read") || this.#row.asksForCertificate === true;
  }

  /** Returns why a request is refused; undefined if it is admitted. Most requests are admitted without a promise. */
  refusalOf(request: GuardedRequest, need: Access): Soon<Refusal | undefined> {
    const reason = this.#reason(request, need);
    if (reason === undefined) return undefined;
    const { accounts, readsOnly } = this.#row;
    // Read now, because a closed socket no longer has its address.
    const client = request.socket.remoteAddress;
    const refuse = (why: Reason) => {
      this.#row.refused({ client, method: request.method, reason: why });
      return this.#row.errorOf(why);
    };
    const token = tokenOf(request.headers.authorization);
    if (accounts === undefined || token === undefined || this.#hasExpired(request)) return refuse(reason);
    return accounts.accessOf(token).then((access) => {
      if (isEnough(access, need)) return undefined;
      return refuse(access === undefined ? reason : readsOnly);
    });
  }

  /** Returns what the sender of these headers may do; a refusal, which is not counted, if it may not even read. */
  rightsOf(headers: IncomingHttpHeaders): Rights | Refusal {
    const refused = this.#missing(headers, "read");
    if (refused !== undefined) return this.#row.errorOf(refused);
    const token = tokenOf(headers.authorization);
    const hasToken = token !== undefined && this.#inFile(token, "read");
    return { hasToken, mayChange: this.#missing(headers, "write") === undefined };
  }

  /** Registers a long-lived answer. It is cut when the request's token is removed, or token or certificate expire. */
  follow({ headers }: IncomingMessage, response: ServerResponse): void {
    const given = this.#asksForToken("read") ? tokenOf(headers.authorization) : undefined;
    const token = given ?? (this.#row.asksForCertificate === true ? noToken : undefined);
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
    for (const file of Object.values(this.#tokens)) file?.stop();
  }

  #reason(request: GuardedRequest, need: Access): Reason | undefined {
    const { missing, never, isOpen } = this.#row;
    const refused = this.#hasExpired(request) ? missing[need] : never?.(request, need);
    if (refused !== undefined) return refused;
    if (this.#asksForToken(need) && isOpen?.(request) === true) return undefined;
    return this.#missing(request.headers, need);
  }

  /** Returns why the sender of these headers may not do something; undefined if it may. */
  #missing(headers: IncomingHttpHeaders, need: Access): Reason | undefined {
    const { missing, withoutToken } = this.#row;
    if (this.#holdsToken(headers, need)) return undefined;
    if (this.#asksForToken(need)) return missing[need];
    return withoutToken(headers, need) ?? (need === "write" ? this.#missing(headers, "read") : undefined);
  }

  #asksForToken(need: Access): boolean {
    return this.#tokens[need] !== undefined || this.#row.accounts !== undefined;
  }

  #holdsToken({ authorization }: IncomingHttpHeaders, need: Access): boolean {
    const token = authorization === undefined ? undefined : tokenOf(authorization);
    if (token === undefined) return false;
    return this.#inFile(token, need) || isEnough(this.#row.accounts?.known(token), need);
  }

  #inFile(token: string, need: Access): boolean {
    const { read, write } = this.#tokens;
    if (holdsToken(write?.value, token)) return true;
    return need === "read" && read !== write && holdsToken(read?.value, token);
  }

  /** TLS lets no connection in without a client certificate, but does not see that the certificate expires later. */
  #hasExpired(request: Pick<GuardedRequest, "socket">): boolean {
    return this.#row.asksForCertificate === true && !hasValidCertificate(request, this.#clock.nowMs());
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
    return token === noToken || this.#inFile(token, "read") || this.#row.accounts?.known(token) !== undefined;
  }

  /** Looks every second, because the token of a ServiceAccount and a certificate expire without an event. */
  async #watchExpiry(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#clock.sleep(expiryCheckMs, signal);
      this.#cutRevoked();
    }
  }

  async #openTokens(around: { readonly clock: Clock; readonly log: Log }): Promise<void> {
    const { tokenFiles, emptied, accounts, asksForCertificate } = this.#row;
    if (accounts !== undefined || asksForCertificate === true) void this.#watchExpiry();
    const changed = () => this.#cutRevoked();
    const { read, write } = tokenFiles;
    const open = (path: string) => openTokens({ path, emptied, changed, ...around });
    if (read !== undefined) this.#tokens.read = await open(read);
    if (read === write) this.#tokens.write = this.#tokens.read;
    else if (write !== undefined) this.#tokens.write = await open(write);
  }
}

function isEnough(access: Access | undefined, need: Access): boolean {
  return access === "write" || access === need;
}
