/**
 * Makes backups of a running store, writes them into files, and reads them. A backup holds the state of a store at one
 * index.
 */

import { basename, dirname, join } from "node:path";
import type { Files } from "../../lib/files/files.ts";
import { writeWholeFile } from "../../lib/files/whole-file.ts";
import { nextTurn } from "../../lib/slices.ts";
import { WalError } from "../core/log-port.ts";
import { isAtOrBelow, type StorePath } from "../core/node.ts";
import { encodeInTurns, StateReader } from "../snapshot/snapshot.ts";
import { Tree } from "../tree/tree.ts";
import type { StoredNode } from "../tree/tree-walk.ts";
import { EventRing } from "../watch/event-ring.ts";
import { type BackupHead, BackupReader, framedBackup } from "./format.ts";

/** A store beside the main one. A backup includes a part of it at the same paths, where the main store has nothing. */
export interface BesideTree {
  readonly tree: Tree;
  /** The path of the part. */
  readonly root: StorePath;
}

/** A whole backup, read into memory. */
export interface ReadBackup {
  readonly head: BackupHead;
  readonly tree: Tree;
  /** The size of the backup's bytes. */
  readonly sizeBytes: number;
}

/**
 * The bytes of a backup, in slices of a millisecond or two. They hold the state of the moment when the first slice is
 * requested. Any time may pass between two slices. A reader that stops early must call `return`, like `for await`.
 */
export async function* backupOf(
  tree: Tree,
  origin: () => Omit<BackupHead, "index">,
  beside?: BesideTree,
): AsyncGenerator<Uint8Array, void, undefined> {
  const walk = tree.walkFrozen();
  const besideWalk = beside?.tree.walkFrozen();
  try {
    const { index } = tree;
    const nodes = allNodes(walk.steps(), besideWalk?.steps() ?? [], { root: beside?.root, index });
    // A restored store begins a new history, so a backup has no events.
    const state = { index, oldestIndex: index + 1, events: [], nodes };
    yield* framedBackup({ ...origin(), index }, encodeInTurns(state));
  } finally {
    besideWalk?.end();
    walk.end();
  }
}

/** The other nodes get the index of the backup: in their own store they have indexes of another history. */
function* allNodes(
  own: Iterable<StoredNode | undefined>,
  others: Iterable<StoredNode | undefined>,
  { root, index }: { readonly root: StorePath | undefined; readonly index: number },
): Generator<StoredNode | undefined> {
  yield* own;
  for (const node of others) {
    const isWanted = node !== undefined && root !== undefined && isAtOrBelow(node.path, root);
    yield isWanted ? { ...node, createdIndex: index, modifiedIndex: index } : undefined;
  }
}

/**
 * Reads a backup into memory.
 * @param open opens the backup; each call gives the same bytes. They are read twice: first to check them, because no
 * state must be built from a damaged backup.
 * @param name the backup's name for messages.
 * @throws {WalError} damaged, newerFormat.
 */
export async function readBackup(open: () => AsyncIterable<Uint8Array>, name: string): Promise<ReadBackup> {
  await readPieces(open(), new BackupReader(name), () => undefined);
  const reader = new BackupReader(name);
  const tree = new Tree();
  const state = new StateReader(tree, new EventRing());
  try {
    const head = await readPieces(open(), reader, (piece) => state.push(piece));
    state.end();
    if (tree.index === head.index) return { head, tree, sizeBytes: reader.size };
  } catch (error) {
    if (!(error instanceof WalError) || error.reason !== "damaged") throw error;
  }
  throw new WalError("damaged", `Reading ${name}: its checksum fits, but what it holds is not what davit writes`);
}

async function readPieces(
  pieces: AsyncIterable<Uint8Array>,
  reader: BackupReader,
  take: (state: Uint8Array) => void,
): Promise<BackupHead> {
  for await (const piece of pieces) {
    take(reader.push(piece));
    await nextTurn();
  }
  return reader.end();
}

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

interface SavedBackup {
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
