/** Makes backups of a running store, and reads them. A backup holds the state of a store at one index. */

import { nextTurn } from "../../lib/slices.ts";
import { WalError } from "../core/log-port.ts";
import { isAtOrBelow, type StorePath } from "../core/node.ts";
import { encodeState, StateReader } from "../snapshot/snapshot.ts";
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
    yield* framedBackup({ ...origin(), index }, encodeState(state));
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
