/** Whether other users of the computer may read or write a path. Its group is trusted. */

import { stat } from "node:fs/promises";

const bitsOfOthers = 0o007;

/**
 * Why a file or directory is not private, with advice; undefined if it is private or missing.
 * @throws a system error when it cannot be read.
 */
export async function publicProblem(path: string): Promise<string | undefined> {
  const stats = await stat(path).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  });
  if (stats === undefined || (stats.mode & bitsOfOthers) === 0) return undefined;
  return `other users can read or write it: chmod o= "${path}"`;
}
