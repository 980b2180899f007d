/** Writes a backup into a file: the whole backup, or no file. */

import { basename, dirname, join } from "node:path";
import type { Files } from "../../lib/files/files.ts";
import { writeWholeFile } from "../../lib/files/whole-file.ts";
import { WalError } from "../core/log-port.ts";
import { type BackupHead, BackupReader } from "./format.ts";

export interface SaveBackupOptions {
  readonly files: Files;
  readonly path: string;
  /** If true, a file at `path` may be replaced. */
  readonly mayReplace: boolean;
  /** The backup's source, for messages. */
  readonly name: string;
  /** The backup's bytes, in pieces of any length. They may be incomplete, so they are checked. */
  readonly pieces: AsyncIterable<Uint8Array>;
  /** Called with the number of bytes written so far. */
  readonly progress: (bytes: number) => void;
  readonly random: (bytes: number) => Uint8Array;
}

export interface SavedBackup {
  readonly head: BackupHead;
  readonly sizeBytes: number;
}

/**
 * Writes the backup into a temporary file in the same directory, with mode 0600. It checks the bytes while it writes,
 * syncs the file and renames it. After an error it leaves no file, unless only the sync of the directory failed.
 * @throws {WalError} damaged, newerFormat; unusable if a file is at `path` and must not be replaced; errors of `pieces`
 * and of the disk.
 */
export async function saveBackup(options: SaveBackupOptions): Promise<SavedBackup> {
  const { files, path, mayReplace, name, random } = options;
  const directory = dirname(path);
  const reader = new BackupReader(name);
  // The name is random: two backups that write into one file would garble it.
  const beside = `${basename(path)}.${Buffer.from(random(4)).toString("hex")}`;
  try {
    await writeWholeFile(files, directory, beside, checked(reader, options));
    const isTaken = (await files.list(directory)).includes(basename(path));
    if (isTaken && !mayReplace)
      throw new WalError("unusable", `Writing "${path}": it exists; give another name, or --force to replace it`);
    await files.rename(join(directory, beside), path);
  } catch (error) {
    await files.remove(join(directory, beside)).catch(() => undefined);
    throw error;
  }
  await files.syncDirectory(directory);
  return { head: reader.end(), sizeBytes: reader.size };
}

async function* checked(
  reader: BackupReader,
  { pieces, progress }: Pick<SaveBackupOptions, "pieces" | "progress">,
): AsyncIterable<Uint8Array> {
  for await (const piece of pieces) {
    reader.push(piece);
    yield piece;
    progress(reader.size);
  }
  reader.end();
}
