/**
 * Lets the store's listener and the cluster's pods trust each other. davit reads the public keys that verify the tokens
 * of ServiceAccounts. It publishes its own certificate authority in a ConfigMap, so that pods can trust the listener's
 * certificate. The ConfigMap must exist: davit has the right to write it, but not to create ConfigMaps.
 */

import type { Ports } from "../../../lib/ports.ts";
import type { ClusterTrust, TokenKeys } from "../../../model/cluster-trust.ts";
import { isJsonObject } from "../../../model/json.ts";
import { ApiError } from "./api-error.ts";
import type { ApiClient } from "./client.ts";
import { objectPath, resources } from "./resources.ts";
import { RetryDelays } from "./retry-delays.ts";

interface ApiServerTrustOptions extends Pick<Ports, "clock" | "log" | "random"> {
  readonly client: Pick<ApiClient, "json">;
  /** The ConfigMap for the certificate authority; undefined to publish nothing. */
  readonly configMap: { readonly namespace: string; readonly name: string } | undefined;
}

const certKey = "ca.crt";

export class ApiServerTrust implements ClusterTrust {
  readonly #options: ApiServerTrustOptions;
  readonly #stopping = new AbortController();
  readonly #delays: RetryDelays;
  #wanted = "";
  /** The last logged reason why the certificate authority could not be published; empty after a success. */
  #loggedProblem = "";
  #publishing: Promise<void> | undefined;

  constructor(options: ApiServerTrustOptions) {
    this.#options = options;
    this.#delays = new RetryDelays(options);
  }

  /** @throws {ApiError} */
  async tokenKeys(): Promise<TokenKeys> {
    const { client } = this.#options;
    const { signal } = this.#stopping;
    // Paths of the discovery of the ServiceAccount issuer, which every ServiceAccount has the right to read.
    const discovery = await client.json({ path: "/.well-known/openid-configuration", signal });
    const { keys } = await client.json({ path: "/openid/v1/jwks", accept: "application/jwk-set+json", signal });
    if (typeof discovery.issuer !== "string" || !Array.isArray(keys) || !keys.every(isJsonObject)) {
      throw new ApiError("protocol", { what: "it has no usable keys of ServiceAccounts" });
    }
    return { issuer: discovery.issuer, keys };
  }

  publishAuthority(cert: string): void {
    this.#wanted = cert;
    this.#publishing ??= this.#publish().finally(() => {
      this.#publishing = undefined;
    });
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#publishing;
  }

  async #publish(): Promise<void> {
    const { configMap, clock, log } = this.#options;
    if (configMap === undefined) return;
    for (let published = ""; published !== this.#wanted && !this.#stopping.signal.aborted; ) {
      const cert = this.#wanted;
      try {
        await this.#apply(configMap, cert);
        published = cert;
        this.#loggedProblem = "";
        log.info(configMap, "authority of the store is published");
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (this.#stopping.signal.aborted) return;
        this.#logProblem(configMap, error.message);
        await clock.sleep(this.#delays.next(), this.#stopping.signal);
      }
    }
  }

  /** Logs a reason, unless it is the last logged one: without the ConfigMap, every retry fails for the same reason. */
  #logProblem(configMap: object, problem: string): void {
    if (problem === this.#loggedProblem) return;
    this.#loggedProblem = problem;
    this.#options.log.warn({ ...configMap, problem }, "cannot publish the store's authority, trying again later");
  }

  async #apply(
    { namespace, name }: { readonly namespace: string; readonly name: string },
    cert: string,
  ): Promise<void> {
    const { apiVersion, kind } = resources.ConfigMap;
    await this.#options.client.json({
      method: "PATCH",
      path: objectPath(resources.ConfigMap, namespace, name),
      query: { fieldManager: "davit-store", force: "true" },
      body: {
        contentType: "application/apply-patch+yaml",
        value: { apiVersion, kind, metadata: { namespace, name }, data: { [certKey]: cert } },
      },
      signal: this.#stopping.signal,
      retries: 0,
    });
  }
}
