/**
 * Decides who may read everything from the store's listener, even the texts of Secrets. It guards the routes for
 * followers and backups. If the listener's door asks for credentials, the door has already checked them. Otherwise the
 * listener must be on loopback, and the request must have the local token of the data directory. Loopback is not
 * enough: other users of the computer reach it, too (docs/internals/decisions/0003-who-may-follow-a-store-and-when.md).
 */

import type { IncomingMessage } from "node:http";
import { StoreError } from "../../store/core/refusal.ts";
import { holdsToken, tokenDigest, tokenOf } from "../bearer-tokens.ts";

export interface SecretsGuardOptions {
  /** True when the listener's door asks for credentials. */
  readonly doorAsks: boolean;
  readonly isLoopback: boolean;
  /** The token that davit keeps in its data directory. */
  readonly localToken: string;
}

/** Returns why a request is refused; undefined if it may continue. */
export type SecretsGuard = (request: IncomingMessage) => StoreError | undefined;

/** Makes the guard of a listener. */
export function secretsGuard({ doorAsks, isLoopback, localToken }: SecretsGuardOptions): SecretsGuard {
  if (doorAsks) return () => undefined;
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
