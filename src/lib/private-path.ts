/** Checks whether other users of the computer have access to a path. The users of the path's group are trusted. */

import { stat } from "node:fs/promises";

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
