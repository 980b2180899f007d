/** The mark in a data directory whose store was moved: one line, where it is now. */

import { join } from "node:path";
import type { Files } from "../../lib/files/files.ts";
import { movedAway, movedName } from "../core/moved.ts";

/** True if the store of a directory was moved to another place. */
export async function isMoved(files: Files, directory: string): Promise<boolean> {
  return (await files.list(directory)).includes(movedName);
}

/** @throws {WalError} unusable, if the store was moved. */
export async function refuseMoved(files: Files, directory: string): Promise<void> {
  if (!(await isMoved(files, directory))) return;
  const path = join(directory, movedName);
  throw movedAway(`"${directory}"`, (await files.read(path)).toString().trim(), `"${path}"`);
}
