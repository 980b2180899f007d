/**
 * Reads files of bearer tokens, for the store's listener and for its followers. A line has one token. Empty lines and
 * lines that begin with `#` are ignored.
 */

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { codeOf } from "../errors.ts";
import type { Files } from "./files.ts";
import { FileError } from "./watched-files.ts";
import { writeWholeFile } from "./whole-file.ts";

// Shorter tokens could be guessed over the network. Longer tokens do not fit into a request's headers. A cluster's
// tokens fit, even with many claims.
const minTokenLength = 16;
const maxTokenLength = 8 * 1024;

/**
 * Returns the tokens of a file in their order; there may be none.
 * @throws {FileError} for a line that is no token. The message has the line's number, never its text.
 */
export function readTokens(text: string): readonly string[] {
  const lines = text.split("\n").map((line, at) => ({ token: line.trim(), number: at + 1 }));
  const given = lines.filter(({ token }) => token !== "" && !token.startsWith("#"));
  for (const { token, number } of given) {
    if (!/^[\x21-\x7e]+$/.test(token)) throw new FileError(`line ${number} is not one word of ASCII`);
    if (token.length < minTokenLength || token.length > maxTokenLength) {
      throw new FileError(`the token of line ${number} is not ${minTokenLength} to ${maxTokenLength} characters long`);
    }
  }
  return given.map(({ token }) => token);
}

const localTokenName = "local-token";
const localTokenBytes = 32;

/** Returns the path of a data directory's local token. */
export function localTokenFile(dataDir: string): string {
  return join(dataDir, localTokenName);
}

/**
 * Returns the local token. With it, other programs of the same user can read everything in the store. davit makes the
 * file at the first start, with mode 0600.
 * @throws {FileError} if the file has no token; a system error if it cannot be read or written.
 */
export async function openLocalToken(files: Files, dataDir: string): Promise<string> {
  const text = await readIfThere(files, localTokenFile(dataDir));
  if (text === undefined) {
    const made = randomBytes(localTokenBytes).toString("base64url");
    await writeWholeFile(files, dataDir, localTokenName, [Buffer.from(`${made}\n`)]);
    return made;
  }
  const [token] = readTokens(text);
  if (token === undefined) throw new FileError("it has no token: remove it, and the next start makes another one");
  return token;
}

async function readIfThere(files: Files, path: string): Promise<string | undefined> {
  try {
    return (await files.read(path)).toString("utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
