/** Bearer tokens: read from a header, and compared in constant time with those of a file. */

import { hash, timingSafeEqual } from "node:crypto";
import { StartError } from "../lib/start-error.ts";
import { readTokens } from "../lib/token-file.ts";
import { WatchedFiles, type WatchedFilesOptions } from "../lib/watched-files.ts";

/** SHA-256 of a token: all have one length, so comparing reveals no token's length. */
type TokenDigest = Buffer;

/** The challenge of a refusal: the schemes that davit accepts (RFC 9110, 11.6.1). */
export const tokenChallenge = 'Bearer realm="davit", Basic realm="davit"';

export interface TokenFileOptions extends Pick<WatchedFilesOptions<unknown>, "clock" | "log"> {
  readonly path: string;
  /** Logged when the file no longer has any token: an operator who empties it wants nobody to get in. */
  readonly emptied: string;
  /** Called after each change. */
  readonly changed?: () => void;
}

/** The tokens of a file that may change at any time: the next request is checked against the new ones. */
export class TokenFile {
  readonly #files: WatchedFiles<readonly TokenDigest[]>;
  #tokens: readonly TokenDigest[] = [];

  private constructor({ path, emptied, changed, clock, log }: TokenFileOptions) {
    this.#files = new WatchedFiles<readonly TokenDigest[]>({
      paths: [path],
      secretPaths: [path],
      parse: ([text = ""]) => readTokens(text).map(tokenDigest),
      changed: (tokens) => {
        this.#tokens = tokens;
        if (tokens.length === 0) log.warn({ path }, emptied);
        changed?.();
      },
      clock,
      log,
    });
  }

  /**
   * Reads the file and follows it.
   * @throws {StartError} when it cannot be used, or has no token.
   */
  static async open(options: TokenFileOptions): Promise<TokenFile> {
    const file = new TokenFile(options);
    file.#tokens = await file.#files.start();
    if (file.#tokens.length > 0) return file;
    file.stop();
    throw new StartError(`Cannot use "${options.path}": it has no token`);
  }

  /** True for one of the file's tokens. */
  holds(token: string): boolean {
    return holdsToken(this.#tokens, token);
  }

  /** Stops following the file; idempotent. */
  stop(): void {
    this.#files.stop();
  }
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
