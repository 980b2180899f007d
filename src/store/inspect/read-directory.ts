/**
 * Reads the state in a data directory into memory, like a start. It writes nothing, not even the repairs of a start. It
 * takes no lock, so the caller must keep other processes out of the directory.
 */

import type { Files } from "../../lib/files/files.ts";
import { decodeRecord } from "../command/command-codec.ts";
import { WalError } from "../core/log-port.ts";
import { StateMachine } from "../snapshot/state-machine.ts";
import { checkKnownEnd } from "../wal/log-end.ts";
import { checkGoesOnFrom, type LogEnd, recover } from "../wal/recover.ts";
import { SnapshotFiles } from "../wal/snapshots.ts";

export interface DirectoryState {
  readonly machine: StateMachine;
  readonly end: LogEnd;
}

/**
 * Builds the state from the newest whole snapshot and the later log.
 * @param agelessRoot see `RunClock`.
 * @throws {WalError} like a start; damaged when there is no log.
 */
export async function readDirectory(files: Files, directory: string, agelessRoot?: string): Promise<DirectoryState> {
  const machine = new StateMachine(agelessRoot);
  const snapshot = await new SnapshotFiles(files, directory).load();
  if (snapshot !== undefined) await machine.restore(snapshot);
  const onCommand = (_sequence: number, bytes: Uint8Array, term: number) => machine.replay(decodeRecord(bytes), term);
  const end = await recover({ files, directory, after: snapshot?.sequence ?? 0, onCommand });
  if (snapshot !== undefined) checkGoesOnFrom(snapshot, end, directory);
  await checkKnownEnd({ files, directory }, end);
  if (end === undefined) {
    const cure = "correct the directory; if the store is in etcd, run davit backup --store URL";
    throw new WalError("damaged", `Reading "${directory}": no segment of a log is in it: ${cure}`);
  }
  return { machine, end };
}
