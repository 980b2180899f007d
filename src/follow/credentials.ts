/**
 * Reads the files that a follower needs to authenticate itself and its store. The follower reads them again for each
 * connection, because operators and clusters replace them from time to time.
 */

import { createSecureContext } from "node:tls";
import { readSentence } from "../lib/files/disk-sentence.ts";
import { publicProblem } from "../lib/files/private-path.ts";
import { readTokens } from "../lib/files/token-file.ts";
import { FileError, readSmallFile } from "../lib/files/watched-files.ts";
import type { StoreCredentials } from "./store-request.ts";

/** Paths of files; undefined for a file that the store does not require. */
export interface CredentialFiles {
  readonly tokenFile?: string | undefined;
  readonly caFile?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

/**
 * Reads and checks the files.
 * @throws {FileError} if a file cannot be read or used. The message names the file.
 */
export async function readCredentials(files: CredentialFiles): Promise<StoreCredentials> {
  const { tokenFile, caFile, certFile, keyFile } = files;
  const tokens = await readSecret(tokenFile, readTokens);
  if (tokens?.length === 0) throw new FileError(`Cannot use "${tokenFile}": it has no token`);
  const ca = await read(caFile, (text) => checked(text, { ca: text }));
  const cert = await read(certFile, (text) => checked(text, { cert: text }));
  const key = await readSecret(keyFile, (text) => checked(text, { key: text }));
  if (cert !== undefined) {
    await read(keyFile, (text) => checked(text, { cert, key: text }, "it is not the key of the certificate"));
  }
  return { token: tokens?.[0], ca, cert, key };
}

/** Like `read`, but it refuses a file that other users can read or write. */
async function readSecret<Value>(path: string | undefined, parse: (text: string) => Value): Promise<Value | undefined> {
  return await read(path, parse, true);
}

async function read<Value>(
  path: string | undefined,
  parse: (text: string) => Value,
  isSecret = false,
): Promise<Value | undefined> {
  if (path === undefined) return undefined;
  try {
    const problem = isSecret ? await publicProblem(path) : undefined;
    if (problem !== undefined) throw new FileError(problem);
    return parse(await readSmallFile(path));
  } catch (error) {
    const problem = error instanceof FileError ? error.message : (readSentence(error) ?? "it cannot be read");
    throw new FileError(`Cannot use "${path}": ${problem}`, { cause: error });
  }
}

/** Checks text in PEM, and returns it. An error has our own message, not the library's. */
function checked(text: string, context: StoreCredentials, problem = "it is not PEM of that kind"): string {
  try {
    createSecureContext(context);
  } catch (error) {
    throw new FileError(problem, { cause: error });
  }
  // The library ignores text that has no certificate, and would then trust no server.
  if (!text.includes("-----BEGIN ")) throw new FileError(problem);
  return text;
}
