/**
 * Who may read everything from the store's listener, even the texts of Secrets: followers and backups. A door that asks
 * for credentials has already checked them. Without one, the listener must be on loopback, and the request must have
 * the local token of the data directory: other users of the computer reach loopback, too
 * (docs/internals/decisions/0003-who-may-follow-a-store-and-when.md).
 */

import type { IncomingMessage } from "node:http";
import { StoreError } from "../../store/core/refusal.ts";
import { holdsToken, tokenDigest, tokenOf } from "../bearer-tokens.ts";

export interface SecretsGuardOptions {
  /** True when the listener's door asks for credentials. */
  readonly doorAsks: boolean;
  readonly isLoopback: boolean;
  /** That of the data directory. */
  readonly localToken: string;
}

/** Why a request is refused; undefined for one that may continue. */
export type SecretsGuard = (request: IncomingMessage) => StoreError | undefined;

/** Makes the guard of a listener. */
export function secretsGuard({ doorAsks, isLoopback, localToken }: SecretsGuardOptions): SecretsGuard {
  if (doorAsks) return () => undefined;
  const closed = "this needs --store-token-file or --store-client-ca-file";
  if (!isLoopback) return () => new StoreError("forbidden", closed, 0);
  const digests = [tokenDigest(localToken)];
  return ({ headers }) => {
    const token = tokenOf(headers.authorization);
    if (token !== undefined && holdsToken(digests, token)) return undefined;
    return new StoreError("unauthorized", "this needs the local token of the data directory (--data-dir)", 0);
  };
}
