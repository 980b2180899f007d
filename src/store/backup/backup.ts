/** Backups: the state of a store at one index, taken while it runs, and read back into memory. */

import { nextTurn } from "../../lib/slices.ts";
import { WalError } from "../core/log-port.ts";
import { encodeState, StateReader } from "../snapshot/snapshot.ts";
import { Tree } from "../tree/tree.ts";
import { EventRing } from "../watch/event-ring.ts";
import { type BackupHead, BackupReader, framedBackup } from "./format.ts";

/** A backup that was read whole. */
export interface ReadBackup {
  readonly head: BackupHead;
  readonly tree: Tree;
  /** Of the file. */
  readonly sizeBytes: number;
}

/**
 * The bytes of a backup, in slices of a millisecond or two. It shows the state when the first slice is requested; any
 * time may pass between two slices. A reader that stops early must call `return`, as `for await` does.
 */
export async function* backupOf(
  tree: Tree,
  origin: () => Omit<BackupHead, "index">,
): AsyncGenerator<Uint8Array, void, undefined> {
  const walk = tree.walkFrozen();
  try {
    const { index } = tree;
    // A restore begins a new history, so it needs none.
    const state = { index, oldestIndex: index + 1, events: [], nodes: walk.steps() };
    yield* framedBackup({ ...origin(), index }, encodeState(state));
  } finally {
    walk.end();
  }
}

/**
 * Reads a backup into memory.
 * @param open gives the same bytes each time. They are read twice, because no state must be built from a damaged
 * backup.
 * @param name for messages.
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
