/** Tokens of etcd's user: fetched with the first request, and again when an endpoint refuses one. */

import type { EtcdEndpoint } from "./endpoint.ts";
import { asEtcdError, serverText } from "./etcd-error.ts";
import { type EtcdClock, type EtcdWarnings, timeLimit } from "./host.ts";

export interface EtcdCredentials {
  readonly username: string;
  /** Read for each token, so that a changed file counts. */
  readonly password: () => Promise<string>;
}

interface EtcdLoginOptions {
  readonly credentials: EtcdCredentials | undefined;
  readonly clock: EtcdClock;
  readonly log: EtcdWarnings;
  readonly tryMs: number;
}

export class EtcdLogin {
  readonly #options: EtcdLoginOptions;
  #token: string | undefined;
  /** etcd has no users, so requests need no token. */
  #isOff = false;
  #running: Promise<void> | undefined;

  constructor(options: EtcdLoginOptions) {
    this.#options = options;
  }

  get hasCredentials(): boolean {
    return this.#options.credentials !== undefined;
  }

  /** The token for a request; undefined where none is needed. @throws {EtcdError} */
  async token(endpoint: EtcdEndpoint): Promise<string | undefined> {
    if (this.#token === undefined && !this.#isOff) await this.#fetchOnce(endpoint);
    return this.#token;
  }

  /** A token after `refused` was refused: a new one, unless another request has one already. @throws {EtcdError} */
  async renewed(refused: string | undefined, endpoint: EtcdEndpoint): Promise<string | undefined> {
    if (this.#token === refused) await this.#fetchOnce(endpoint);
    return this.#token;
  }

  async #fetchOnce(endpoint: EtcdEndpoint): Promise<void> {
    this.#running ??= this.#fetch(endpoint).finally(() => {
      this.#running = undefined;
    });
    await this.#running;
  }

  async #fetch(endpoint: EtcdEndpoint): Promise<void> {
    const { credentials, clock, log, tryMs } = this.#options;
    if (credentials === undefined) return;
    const limit = timeLimit(clock, tryMs);
    try {
      const request = { name: credentials.username, password: await credentials.password() };
      const { token } = await endpoint.auth.authenticate(request, { signal: limit.signal });
      this.#token = token;
      this.#isOff = false;
    } catch (error) {
      if (serverText(error)?.includes("authentication is not enabled") !== true) {
        throw asEtcdError(error, endpoint.origin, false);
      }
      this.#token = undefined;
      this.#isOff = true;
      log.warn({ endpoint: endpoint.origin }, "etcd has no users: davit's user name and password are not used");
    } finally {
      limit.cancel();
    }
  }
}
