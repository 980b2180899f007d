/** The port for a cluster's token keys, and for publishing davit's certificate authority to the cluster's pods. */

import type { JsonObject } from "./json.ts";

/** The keys with which a cluster signs the tokens of its ServiceAccounts. */
export interface TokenKeys {
  /** The `iss` of these tokens. */
  readonly issuer: string;
  /** Public keys, each a JSON Web Key (RFC 7517). */
  readonly keys: readonly JsonObject[];
}

export interface ClusterTrust {
  /** @throws {Error} while the cluster does not answer. */
  tokenKeys(): Promise<TokenKeys>;
  /**
   * Publishes the certificate authority that pods must trust, as a PEM certificate. Returns immediately, and retries
   * until it succeeds.
   */
  publishAuthority(cert: string): void;
}
