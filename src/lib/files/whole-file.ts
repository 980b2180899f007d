/** Writes a file completely or not at all. */

import { join } from "node:path";
import type { Files } from "./files.ts";

const unfinished = ".tmp";

/**
 * Writes a file under a temporary name, syncs the file and renames it. Resolves when both the content and the final
 * name are on disk. After a failure, this function removes the temporary file, because that file takes up space.
 */
export async function writeWholeFile(
  files: Files,
  directory: string,
  name: string,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  const path = join(directory, name);
  try {
    await writeUnfinished(files, path, pieces);
    await files.rename(path + unfinished, path);
  } catch (error) {
    // If this removal fails, the next `writeUnfinished` for this path truncates the temporary file.
    await files.remove(path + unfinished).catch(() => undefined);
    throw error;
  }
  await files.syncDirectory(directory);
}

async function writeUnfinished(
  files: Files,
  path: string,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  const file = await files.openAppend(path + unfinished);
  try {
    // The temporary file of a failed write may still exist.
    await file.truncate(0);
    for await (const piece of pieces) await file.append(piece);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Removes every temporary file of `writeWholeFile` from a directory. */
export async function removeUnfinishedFiles(files: Files, directory: string): Promise<void> {
  const names = await files.list(directory);
  for (const name of names.filter((each) => each.endsWith(unfinished))) await files.remove(join(directory, name));
}
