/**
 * Reads the state in a data directory into memory, like a start. It writes nothing, not even the repairs of a start. It
 * takes no lock, so the caller must keep other processes out of the directory.
 */

import type { Files } from "../../lib/files.ts";
import { nextTurn } from "../../lib/slices.ts";
import { apply } from "../command/command.ts";
import { decodeRecord } from "../command/command-codec.ts";
import { WalError } from "../core/log-port.ts";
import { StoreError } from "../core/refusal.ts";
import { StateReader } from "../snapshot/snapshot.ts";
import { Tree } from "../tree/tree.ts";
import { checkKnownEnd } from "../wal/log-end.ts";
import { checkGoesOnFrom, type LogEnd, recover } from "../wal/recover.ts";
import { SnapshotFiles } from "../wal/snapshots.ts";
import { EventRing } from "../watch/event-ring.ts";

export interface DirectoryState {
  readonly tree: Tree;
  readonly history: EventRing;
  readonly end: LogEnd;
}

/**
 * Builds the state from the newest whole snapshot and the later log.
 * @throws {WalError} like a start; damaged when there is no log.
 */
export async function readDirectory(files: Files, directory: string): Promise<DirectoryState> {
  const tree = new Tree();
  const history = new EventRing();
  const snapshot = await new SnapshotFiles(files, directory).load();
  if (snapshot !== undefined) {
    const reader = new StateReader(tree, history);
    for await (const piece of snapshot.pieces) {
      reader.push(piece);
      await nextTurn();
    }
    reader.end();
  }
  const onCommand = (_sequence: number, bytes: Uint8Array) => replay(tree, history, bytes);
  const end = await recover({ files, directory, after: snapshot?.sequence ?? 0, onCommand });
  if (snapshot !== undefined) checkGoesOnFrom(snapshot, end, directory);
  await checkKnownEnd({ files, directory }, end);
  if (end === undefined) throw new WalError("damaged", `Reading "${directory}": no segment of a log is in it`);
  return { tree, history, end };
}

function replay(tree: Tree, history: EventRing, bytes: Uint8Array): void {
  try {
    for (const { event } of apply(tree, decodeRecord(bytes))) history.add(event);
  } catch (error) {
    // The store refused the command, too, when it was proposed.
    if (!(error instanceof StoreError)) throw error;
  }
}
