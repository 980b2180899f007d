/** Port to what a cluster vouches for, and what it tells its pods for davit. */

import type { JsonObject } from "./json.ts";

/** What a cluster signs the tokens of its ServiceAccounts by. */
export interface TokenKeys {
  /** The `iss` of its tokens. */
  readonly issuer: string;
  /** Public keys, each a JSON Web Key (RFC 7517). */
  readonly keys: readonly JsonObject[];
}

export interface ClusterTrust {
  /** @throws {Error} while the cluster cannot be asked. */
  tokenKeys(): Promise<TokenKeys>;
  /** Has the cluster show its pods whom to trust: a certificate, PEM. Resolves at once; it is tried until it is done. */
  publishAuthority(cert: string): void;
}
