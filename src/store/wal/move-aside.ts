/** Moves a damaged log aside, without losing a byte, so that a new store can begin in its directory. */

import { join } from "node:path";
import type { Files } from "../../lib/files.ts";
import { logEndName } from "./log-end.ts";
import { listSegments } from "./recover.ts";
import { listSnapshots } from "./snapshots.ts";
import { startFailure } from "./start-failure.ts";

const asideName = /^damaged-(\d+)$/;

/**
 * Moves segments and snapshots into a new folder `damaged-<n>` inside the directory, which nobody else may use.
 *
 * It moves segments first, the oldest one before the others, each durably. So a crash leaves a log without its
 * beginning, which the next start refuses, too, and never a log that ends too early.
 * @returns the folder's path.
 * @throws {WalError} unusable.
 */
export async function moveAside(files: Files, directory: string): Promise<string> {
  try {
    const numbers = (await files.list(directory)).map((name) => Number(asideName.exec(name)?.[1] ?? 0));
    const aside = join(directory, `damaged-${Math.max(0, ...numbers) + 1}`);
    await files.makeDirectory(aside);
    await files.syncDirectory(directory);
    const names = [...(await listSegments(files, directory)), ...(await listSnapshots(files, directory))];
    // Last: without it a log with a missing end could pass for a whole one.
    if ((await files.list(directory)).includes(logEndName)) names.push(logEndName);
    for (const name of names) {
      await files.rename(join(directory, name), join(aside, name));
      await files.syncDirectory(aside);
      await files.syncDirectory(directory);
    }
    return aside;
  } catch (error) {
    throw startFailure("Moving damaged files of", directory, error);
  }
}
