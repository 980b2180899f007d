/**
 * Makes a data directory from a backup: a new cluster, whose history begins there.
 *
 * Its indexes begin far beyond those of the backup, and beyond any that clients saw after the backup was taken. A
 * client of the lost store may still wait for that store's next event. The new store answers immediately that the
 * history is gone. With smaller indexes, the client would wait until the new store reached that event's index.
 * Followers recognise another store by its cluster id.
 *
 * A restore writes the segment first and the snapshot last. A start refuses a segment whose snapshot is missing, so an
 * interrupted restore leaves no store that looks whole.
 */

import { join } from "node:path";
import type { Files } from "../../lib/files.ts";
import { WalError } from "../core/log-port.ts";
import { isAtOrBelow, type StorePath } from "../core/node.ts";
import { encodeState } from "../snapshot/snapshot.ts";
import type { Tree } from "../tree/tree.ts";
import type { StoredNode } from "../tree/tree-walk.ts";
import { beginLog } from "../wal/begin-log.ts";
import type { LockDirectory } from "../wal/lock.ts";
import { listSegments } from "../wal/recover.ts";
import { listSnapshots, SnapshotFiles } from "../wal/snapshots.ts";
import { startFailure } from "../wal/start-failure.ts";
import type { ReadBackup } from "./backup.ts";

export interface RestoreOptions {
  readonly backup: ReadBackup;
  /** Made when it is missing. */
  readonly directory: string;
  /** The path that is not restored, with everything below it. */
  readonly without: StorePath;
  readonly files: Files;
  readonly lock: LockDirectory;
  /** Random bytes from a source that does not repeat. */
  readonly random: (bytes: number) => Uint8Array;
}

export interface Restored {
  readonly clusterId: string;
  /** The index of the last change; the store continues from it. */
  readonly index: number;
}

/**
 * How far the store index and the sequence leap. davit assumes that a store makes fewer changes than this between its
 * last backup and its loss.
 */
export const restoreLeap = 1_000_000;

// These names do not count: a new file system has `lost+found`, and a refused start leaves `lock.db`.
const emptyNames = new Set(["lost+found", "lock.db"]);

/** Checks that a directory is empty. @throws {WalError} unusable, for one that is not. */
export async function refuseUnlessEmpty(files: Files, directory: string): Promise<void> {
  const found = (await files.list(directory)).find((name) => !emptyNames.has(name));
  if (found === undefined) return;
  const advice = "give another --data-dir, or move away what is in it";
  throw new WalError("unusable", `Restoring to "${directory}": it is not empty, "${found}" is in it; ${advice}`);
}

/**
 * Writes the store into the directory, and resolves when everything is on disk. After an error it removes what it
 * wrote, if the disk allows.
 * @throws {WalError} locked, unusable.
 */
export async function restore(options: RestoreOptions): Promise<Restored> {
  const { files, directory, lock } = options;
  try {
    await files.makeDirectory(directory);
    const held = lock(directory);
    try {
      await refuseUnlessEmpty(files, directory);
      return await write(options);
    } finally {
      held.release();
    }
  } catch (error) {
    throw startFailure("Restoring to", directory, error);
  }
}

async function write({ backup, directory, without, files, random }: RestoreOptions): Promise<Restored> {
  const { head, tree } = backup;
  const sequence = head.raftIndex + restoreLeap;
  const index = head.index + restoreLeap;
  const firstSequence = sequence + 1;
  try {
    const log = await beginLog({ files, directory, random }, { term: head.raftTerm, firstSequence });
    const { clusterId } = log.head;
    const state = { index, oldestIndex: index + 1, events: [], nodes: nodesOf(tree, without) };
    await new SnapshotFiles(files, directory).save({ clusterId, sequence }, encodeState(state));
    return { clusterId: clusterId.toString(16), index };
  } catch (error) {
    await takeBack(files, directory);
    throw error;
  }
}

/** Removes the written files, the snapshot first: a start refuses the segment alone. */
async function takeBack(files: Files, directory: string): Promise<void> {
  try {
    const names = [...(await listSnapshots(files, directory)), ...(await listSegments(files, directory))];
    for (const name of names) await files.remove(join(directory, name));
  } catch {
    // The caller reports the failure of the restore. If files remain, a start refuses them.
  }
}

function* nodesOf(tree: Tree, without: StorePath): Iterable<StoredNode | undefined> {
  const walk = tree.walkFrozen();
  for (const node of walk.steps()) {
    if (node === undefined || !isAtOrBelow(node.path, without)) yield node;
  }
  walk.end();
}
