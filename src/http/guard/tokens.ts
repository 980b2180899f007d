/** Reads bearer tokens from headers, and compares them in constant time with the tokens of a file. */

import { hash, timingSafeEqual } from "node:crypto";
import { readTokens } from "../../lib/files/token-file.ts";
import { WatchedFiles, type WatchedFilesOptions } from "../../lib/files/watched-files.ts";
import { StartError } from "../../lib/start-error.ts";

/** The SHA-256 of a token. All digests have the same length, so a comparison does not reveal the length of a token. */
type TokenDigest = Buffer;

/** The challenge of a refusal. It names the schemes that davit accepts (RFC 9110, 11.6.1). */
export const tokenChallenge = 'Bearer realm="davit", Basic realm="davit"';

interface TokenFileOptions extends Pick<WatchedFilesOptions<unknown>, "clock" | "log"> {
  readonly path: string;
  /** The warning to log when a change removes the last token. From then on every token is refused. */
  readonly emptied: string;
  /** Called after each change of the tokens. */
  readonly changed: () => void;
}

/** The tokens of a file. */
export type TokenFile = WatchedFiles<readonly TokenDigest[]>;

/**
 * Reads the tokens of a file. davit reads the file again when it changes, and checks later requests against the new
 * tokens.
 * @throws {StartError} when the file cannot be used, or has no token.
 */
export async function openTokens({ path, emptied, changed, clock, log }: TokenFileOptions): Promise<TokenFile> {
  const file = new WatchedFiles<readonly TokenDigest[]>({
    paths: [path],
    secretPaths: [path],
    parse: ([text = ""]) => readTokens(text).map(tokenDigest),
    changed: (tokens) => {
      if (tokens.length === 0) log.warn({ path }, emptied);
      changed();
    },
    clock,
    log,
  });
  if ((await file.start()).length > 0) return file;
  file.stop();
  throw new StartError(`Cannot use "${path}": it has no token`);
}

/** Returns the token of an `Authorization` header: the Bearer token, or the password of Basic with any user name. */
export function tokenOf(authorization = ""): string | undefined {
  const [, scheme = "", rest = ""] = /^(\S+) +(\S+) *$/.exec(authorization) ?? [];
  if (scheme.toLowerCase() === "bearer") return rest;
  if (scheme.toLowerCase() !== "basic") return undefined;
  const pair = Buffer.from(rest, "base64").toString("latin1");
  const colon = pair.indexOf(":");
  return colon < 0 ? undefined : pair.slice(colon + 1);
}

/**
 * True if `token` is one of `tokens`. It always compares with all of them, so its duration does not depend on the
 * match.
 */
export function holdsToken(tokens: readonly TokenDigest[] | undefined, token: string): boolean {
  if (tokens === undefined) return false;
  const digest = tokenDigest(token);
  return tokens.reduce((isHeld, known) => timingSafeEqual(known, digest) || isHeld, false);
}

/** Returns the digest of a token, by which tokens are compared. */
export function tokenDigest(token: string): TokenDigest {
  return hash("sha256", token, "buffer");
}
