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
    // The removal may fail, too. The next write of this file then replaces the temporary file. In the log's directory,
    // the next start of the store removes the temporary file (`removeUnfinishedFiles`).
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
    // An earlier write that failed may have left a part of its content under the temporary name.
    await file.truncate(0);
    for await (const piece of pieces) await file.append(piece);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Removes the temporary files that crashes and failed removals left in a directory. */
export async function removeUnfinishedFiles(files: Files, directory: string): Promise<void> {
  const names = await files.list(directory);
  for (const name of names.filter((each) => each.endsWith(unfinished))) await files.remove(join(directory, name));
}
