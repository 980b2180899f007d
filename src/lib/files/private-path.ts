/** Checks whether other users of the computer have access to a path. The users of the path's group are trusted. */

import { stat } from "node:fs/promises";
import { StartError } from "../start-error.ts";

const bitsOfOthers = 0o007;

/**
 * Returns why a file or directory is not private, with advice; undefined if it is private or missing.
 * @throws a system error if its mode cannot be read.
 */
export async function publicProblem(path: string): Promise<string | undefined> {
  const stats = await stat(path).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  });
  if (stats === undefined || (stats.mode & bitsOfOthers) === 0) return undefined;
  return `other users can read or write it: chmod o= "${path}"`;
}

/** @throws {StartError} if other users of this computer have access to a path. */
export async function assertPrivate(path: string): Promise<void> {
  const problem = await publicProblem(path);
  if (problem !== undefined) throw new StartError(`Cannot use "${path}": ${problem}`);
}
