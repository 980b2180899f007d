/** Writes a file completely or not at all. */

import { join } from "node:path";
import type { Files } from "./files.ts";

const unfinished = ".tmp";

/**
 * Writes a file under a temporary name, syncs it and renames it. It resolves when the new name is on disk, too. After a
 * failure it removes the temporary file, which would take up space.
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
    // If this fails, too, the next start removes the file (`removeUnfinishedFiles`).
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
    // An earlier failure may have left a part of a file.
    await file.truncate(0);
    for await (const piece of pieces) await file.append(piece);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Removes the temporary files that a crash left. */
export async function removeUnfinishedFiles(files: Files, directory: string): Promise<void> {
  const names = await files.list(directory);
  for (const name of names.filter((each) => each.endsWith(unfinished))) await files.remove(join(directory, name));
}
