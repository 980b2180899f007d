/** Writes a backup into a file: whole, or not at all. */

import { basename, dirname, join } from "node:path";
import type { Files } from "../../lib/files.ts";
import { writeWholeFile } from "../../lib/whole-file.ts";
import { WalError } from "../core/log-port.ts";
import { type BackupHead, BackupReader } from "./format.ts";

export interface SaveBackupOptions {
  readonly files: Files;
  readonly path: string;
  /** Allows a file of that name to be replaced. */
  readonly mayReplace: boolean;
  /** The backup's source, for messages. */
  readonly name: string;
  /** Its bytes, in pieces of any length, perhaps incomplete. */
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
 * Writes another file in the same directory, mode 0600, checks it while writing, syncs it and renames it.
 * @throws {WalError} damaged, newerFormat; unusable when a file of that name has appeared meanwhile; what the pieces
 * throw, and the disk's own errors. Then nothing is left.
 */
export async function saveBackup(options: SaveBackupOptions): Promise<SavedBackup> {
  const { files, path, mayReplace, name, random } = options;
  const directory = dirname(path);
  const reader = new BackupReader(name);
  // Each run uses another name: two backups that write one file would garble it.
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
