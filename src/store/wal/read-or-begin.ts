/** Reads a log to its end, or begins a new one. */

import { removeUnfinishedFiles } from "../../lib/files/whole-file.ts";
import type { Log } from "../../lib/log.ts";
import { type CommittedListener, WalError } from "../core/log-port.ts";
import { type BeginLogOptions, beginLog, randomId } from "./begin-log.ts";
import { checkKnownEnd } from "./log-end.ts";
import { refuseMoved } from "./moved-mark.ts";
import { formatVersion, segmentHeadBytes } from "./record.ts";
import { checkGoesOnFrom, type LogEnd, recover } from "./recover.ts";
import type { SnapshotFiles, StoredSnapshot } from "./snapshots.ts";

export interface ReadLogOptions extends BeginLogOptions {
  readonly log: Log;
}

export interface ReadLogFrom {
  readonly snapshots: Pick<SnapshotFiles, "readFailure">;
  /** The snapshot that was loaded; undefined if there is none. */
  readonly snapshot: StoredSnapshot | undefined;
  readonly listener: CommittedListener;
}

// The first start of a log has term 2, like a single etcd 3.4.
const termBeforeFirstStart = 1;

/**
 * Reads the log after the snapshot, or begins a log if there is none.
 * @throws {WalError} damaged, newerFormat; unusable, if the store was moved; and the disk's own errors.
 */
export async function readOrBegin(options: ReadLogOptions, from: ReadLogFrom): Promise<LogEnd> {
  const { files, directory } = options;
  const { snapshot, snapshots, listener } = from;
  await refuseMoved(files, directory);
  await removeUnfinishedFiles(files, directory);
  const after = snapshot?.sequence ?? 0;
  const end = await recover({ files, directory, after, onCommand: listener }).catch((error: unknown) => {
    // The missing records may be in a snapshot that the disk could not read. Then this throws the disk's error: nothing
    // is damaged.
    const isDamage = error instanceof WalError && error.reason === "damaged";
    throw (isDamage && snapshot === undefined ? snapshots.readFailure : undefined) ?? error;
  });
  if (snapshot !== undefined) checkGoesOnFrom(snapshot, end, directory);
  await checkKnownEnd(options, end, (error) => {
    options.log.warn({ err: error }, "how far the log reached cannot be read, so a missing end would not be noticed");
  });
  return end ?? begin(options);
}

async function begin(options: BeginLogOptions): Promise<LogEnd> {
  const clusterId = randomId(options.random);
  const { head, segment } = await beginLog(options, { clusterId, term: termBeforeFirstStart, firstSequence: 1 });
  const nothing = { tornBytes: 0, lastBatch: 0, lastSequence: 0, isSealed: true };
  return { head, version: formatVersion, segment, size: segmentHeadBytes, term: head.term, ...nothing };
}
