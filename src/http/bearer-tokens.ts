/** Bearer tokens: read from a header, and compared in constant time with those of a file. */

import { hash, timingSafeEqual } from "node:crypto";
import { readTokens } from "../lib/token-file.ts";

/** SHA-256 of a token: all have one length, so comparing reveals no token's length. */
export type TokenDigest = Buffer;

/** The challenge of a refusal: the schemes that davit accepts (RFC 9110, 11.6.1). */
export const tokenChallenge = 'Bearer realm="davit", Basic realm="davit"';

/**
 * The tokens of a file; there may be none.
 * @throws {FileProblem} for a line that is no token.
 */
export function readTokenDigests(text: string): readonly TokenDigest[] {
  return readTokens(text).map(tokenDigest);
}

/** The token of an `Authorization` header: that of Bearer, or the password of Basic with any user. */
export function tokenOf(authorization = ""): string | undefined {
  const [, scheme = "", rest = ""] = /^(\S+) +(\S+) *$/.exec(authorization) ?? [];
  if (scheme.toLowerCase() === "bearer") return rest;
  if (scheme.toLowerCase() !== "basic") return undefined;
  const pair = Buffer.from(rest, "base64").toString("latin1");
  const colon = pair.indexOf(":");
  return colon < 0 ? undefined : pair.slice(colon + 1);
}

/** True for one of these tokens. It compares with all of them, so that the time reveals nothing. */
export function holdsToken(tokens: readonly TokenDigest[], token: string): boolean {
  const digest = tokenDigest(token);
  return tokens.reduce((isHeld, known) => timingSafeEqual(known, digest) || isHeld, false);
}

/** The form in which tokens are compared. */
export function tokenDigest(token: string): TokenDigest {
  return hash("sha256", token, "buffer");
}
