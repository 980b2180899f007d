/**
 * Makes the first segment of a log, for a new store or a restored one. The log of a restored store continues its
 * snapshot.
 */

import { dirname, resolve } from "node:path";
import { codeOf } from "../../lib/errors.ts";
import type { Files } from "../../lib/files/files.ts";
import type { SegmentHead } from "./record.ts";
import { createSegment } from "./segment-writer.ts";

export interface BeginLogOptions {
  readonly files: Files;
  readonly directory: string;
  /** Random bytes from a source that does not repeat, such as `randomBytes` of node:crypto. */
  readonly random: (bytes: number) => Uint8Array;
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

/** A random 64-bit number that is not 0: for clients, 0 means that there is no id. */
export function randomId(random: BeginLogOptions["random"]): bigint {
  const id = Buffer.from(random(8)).readBigUInt64LE();
  return id === 0n ? 1n : id;
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
