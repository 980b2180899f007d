/** Reads a log to its end, or begins one: that of a new store, or of a restored one, which continues its snapshot. */

import { dirname, join, resolve } from "node:path";
import type { Clock } from "../../lib/clock.ts";
import { codeOf } from "../../lib/errors.ts";
import type { Files } from "../../lib/files/files.ts";
import { removeUnfinishedFiles } from "../../lib/files/whole-file.ts";
import type { Log } from "../../lib/log.ts";
import { type CommittedListener, movedAway, movedName, randomId, WalError } from "../core/log-port.ts";
import type { LockDirectory } from "./lock.ts";
import { checkKnownEnd } from "./log-end.ts";
import { formatVersion, type SegmentHead, segmentHeadBytes } from "./record.ts";
import { checkGoesOnFrom, type LogEnd, recover } from "./recover.ts";
import { createSegment } from "./segment-writer.ts";
import type { SnapshotFiles, StoredSnapshot } from "./snapshots.ts";

export interface BeginLogOptions {
  readonly files: Files;
  readonly directory: string;
  /** Random bytes from a source that does not repeat, such as `randomBytes` of node:crypto. */
  readonly random: (bytes: number) => Uint8Array;
}

/** The options of a log in files. */
export interface FileLogOptions extends BeginLogOptions {
  readonly lock: LockDirectory;
  readonly clock: Clock;
  readonly log: Log;
  /** Called after each batch with the time that its write and sync took. */
  readonly observeSyncSeconds?: (seconds: number) => void;
  readonly maxSegmentBytes?: number;
  /**
   * The most bytes that wait for the disk. Beyond it, the log refuses proposals, because the disk is slower than the
   * clients.
   */
  readonly maxWaitingBytes?: number;
  /** How much room the log reserves for a full disk; none unless given. */
  readonly reserveBytes?: number;
  /**
   * How often the log checks that this process still holds the lock, besides the checks at each write; never unless
   * given.
   */
  readonly lockCheckMs?: number;
}

/** Makes a segment without batches, and returns its head and its name. */
export async function beginLog(
  { files, directory, random }: BeginLogOptions,
  { clusterId, term, firstSequence }: Pick<SegmentHead, "clusterId" | "term" | "firstSequence">,
): Promise<{ readonly head: SegmentHead; readonly segment: string }> {
  const head = {
    segmentId: randomId(random),
    clusterId,
    memberId: randomId(random),
    term,
    firstBatch: 1,
    firstSequence,
    endsPrevious: false,
  };
  const segment = await createSegment({ files, directory }, head);
  await syncParent(files, directory);
  return { head, segment };
}

/**
 * Syncs the parent directory, because the name of a new directory is stored there. If davit has no permission to read
 * the parent, somebody else made the directory, and it needs no sync.
 */
async function syncParent(files: Files, directory: string): Promise<void> {
  try {
    await files.syncDirectory(dirname(resolve(directory)));
  } catch (error) {
    if (codeOf(error) !== "EACCES") throw error;
  }
}

interface ReadLogOptions extends BeginLogOptions {
  readonly log: Log;
}

interface ReadLogFrom {
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

/** True if the store of a directory was moved to another place. */
export async function isMoved(files: Files, directory: string): Promise<boolean> {
  return (await files.list(directory)).includes(movedName);
}

/** @throws {WalError} unusable, if the store was moved. */
export async function refuseMoved(files: Files, directory: string): Promise<void> {
  if (!(await isMoved(files, directory))) return;
  const path = join(directory, movedName);
  throw movedAway(`"${directory}"`, (await files.read(path)).toString().trim(), `"${path}"`);
}
