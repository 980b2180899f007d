/**
 * Reads a log, with one segment in memory at a time, and distinguishes damage from what a crash can leave:
 * - Unreadable bytes at the end of the newest segment count as a torn write, if they contain no whole later batch.
 *   `SegmentWriter.resume` cuts it off. Damage to the last acknowledged batch looks the same: `log-end` may reveal it.
 * - A segment whose sync failed ends where the head of the next segment says. Its other bytes are not read.
 * - Any other unreadable bytes are damage, because they were acknowledged once. Then reading stops, reports the place
 *   and changes nothing.
 */

import { join } from "node:path";
import type { Files } from "../../lib/files/files.ts";
import { nextTurn, Slices } from "../../lib/slices.ts";
import { type CommittedListener, newerFormat, WalError } from "../core/log-port.ts";
import {
  batchHeadBytes,
  batchMagic,
  type DecodedBatch,
  type DecodedHead,
  decodeBatch,
  decodeSegmentHead,
  formatVersion,
  type SegmentHead,
  segmentHeadBytes,
} from "./record.ts";
import type { SnapshotHead } from "./snapshot-frame.ts";

/** Where the log continues. */
export interface LogEnd {
  readonly head: SegmentHead;
  /** Format of the newest segment. */
  readonly version: number;
  /** Name of the newest segment. */
  readonly segment: string;
  /** Bytes of the segment up to the end of its last whole batch. */
  readonly size: number;
  /** Bytes after `size`: a torn write. */
  readonly tornBytes: number;
  readonly lastBatch: number;
  readonly lastSequence: number;
  readonly term: number;
  /** True if the log ends with a clean stop. */
  readonly isSealed: boolean;
}

interface RecoverOptions {
  readonly directory: string;
  readonly files: Files;
  /** Sequence of the snapshot that the log continues; 0 without one. Records up to it are not delivered. */
  readonly after: number;
  readonly onCommand: CommittedListener;
}

/** The end of messages about a log that cannot be read. */
export const startOverAdvice = "restore a backup, or start empty from the sources by --on-damage move-aside";

// Applying this many bytes takes a few milliseconds. Each command counts as some bytes more, because even a short one
// takes time.
const sliceBytes = 128 * 1024;
const commandOverheadBytes = 200;
// Each record of a batch counts as this many bytes, even if it is not delivered.
const passedBytes = 20;

const segmentName = /^\d{16}\.log$/;

/** Names of the segments in a directory, oldest first. */
export async function listSegments(files: Files, directory: string): Promise<readonly string[]> {
  return (await files.list(directory)).filter((name) => segmentName.test(name));
}

export function segmentNameOf(firstSequence: number): string {
  return `${String(firstSequence).padStart(16, "0")}.log`;
}

/** The first sequence of a segment, from its name. */
export function firstSequenceOf(segment: string): number {
  return Number.parseInt(segment, 10);
}

/**
 * Delivers every command after `after`, in order. It does not read segments that have only records up to `after`: a
 * crash may have interrupted their removal, so some of them may be missing.
 * @returns the end of the log; undefined when there is no log yet.
 * @throws {WalError} damaged, newerFormat.
 */
export async function recover(options: RecoverOptions): Promise<LogEnd | undefined> {
  const all = await listSegments(options.files, options.directory);
  const segments = all.slice(
    Math.max(
      0,
      all.findLastIndex((name) => firstSequenceOf(name) <= options.after + 1),
    ),
  );
  let end: LogEnd | undefined;
  for (const [number, name] of segments.entries()) {
    end = await readSegment(options, { name, next: segments[number + 1], previous: end });
  }
  return end;
}

/**
 * Checks that a snapshot belongs to a log and that the log reaches the snapshot's record. @throws {WalError} damaged.
 */
export function checkGoesOnFrom(snapshot: SnapshotHead, end: LogEnd | undefined, directory: string): void {
  if (end?.head.clusterId === snapshot.clusterId && end.lastSequence >= snapshot.sequence) return;
  const what = `its snapshot of record ${snapshot.sequence} is not of this log`;
  throw new WalError("damaged", `Reading "${directory}": ${what}; ${startOverAdvice}`);
}

/** The context for reading one segment. */
interface SegmentContext {
  readonly name: string;
  /** The name of the next segment; undefined for the newest. */
  readonly next: string | undefined;
  /** The end of the previous segment. */
  readonly previous: LogEnd | undefined;
}

/**
 * Reads one segment and delivers its commands.
 * @returns the end of the log up to this segment.
 * @throws {WalError} damaged, newerFormat.
 */
export async function readSegment(options: RecoverOptions, { name, next, previous }: SegmentContext): Promise<LogEnd> {
  const path = join(options.directory, name);
  const segment = await options.files.read(path);
  const { head, version, bytes } = headOf(segment, path);
  checkFollows(head, previous, options.after, path);
  const endBatch = next === undefined ? undefined : await endGivenBy(options.files, join(options.directory, next));
  const slices = new Slices(sliceBytes);
  let end: LogEnd = {
    head,
    version,
    segment: name,
    size: bytes,
    tornBytes: 0,
    lastBatch: head.firstBatch - 1,
    lastSequence: head.firstSequence - 1,
    term: head.term,
    isSealed: previous?.isSealed ?? false,
  };
  while (end.lastBatch + 1 !== endBatch) {
    const batch = decodeBatch(segment, end.size);
    if (batch === undefined || !follows(batch, end)) break;
    await deliver(batch, end.term, options, slices);
    end = endAfter(batch, end);
  }
  const tornBytes = segment.length - end.size;
  if (tornBytes === 0 || end.lastBatch + 1 === endBatch) return end;
  if (next !== undefined || holdsLaterBatch(segment, end)) throw damaged(path, end.size);
  return { ...end, tornBytes };
}

function headOf(segment: Buffer, path: string): Extract<DecodedHead, { kind: "head" }> {
  const decoded = decodeSegmentHead(segment);
  if (decoded.kind === "head") return decoded;
  if (decoded.kind === "invalid") throw damaged(path, 0);
  throw newerFormat(`"${path}"`, decoded.version, formatVersion);
}

/**
 * The number of the batch before which the previous segment ends, read from the next segment's head. It is undefined if
 * the previous segment ends with its last byte. It is also undefined if the head is damaged: the read of that segment
 * reports the damage.
 */
async function endGivenBy(files: Files, path: string): Promise<number | undefined> {
  let bytes: Buffer = Buffer.alloc(0);
  for await (const piece of files.readPieces(path)) {
    bytes = Buffer.concat([bytes, piece]);
    if (bytes.length >= segmentHeadBytes) break;
  }
  const decoded = decodeSegmentHead(bytes);
  return decoded.kind === "head" && decoded.head.endsPrevious ? decoded.head.firstBatch : undefined;
}

/**
 * Checks that a segment follows the previous one without a gap. The first segment must begin right after the snapshot's
 * last record, or earlier.
 */
function checkFollows(head: SegmentHead, previous: LogEnd | undefined, after: number, path: string): void {
  const expectedSequence = (previous?.lastSequence ?? after) + 1;
  const isGap = previous === undefined ? head.firstSequence > expectedSequence : !continues(head, previous);
  if (!isGap) return;
  const found = `it begins with record ${head.firstSequence} of cluster ${head.clusterId.toString(16)}`;
  const advice = `bring back the missing file, ${startOverAdvice}`;
  throw new WalError("damaged", `Reading "${path}": ${found}, but record ${expectedSequence} should follow; ${advice}`);
}

function continues(head: SegmentHead, previous: LogEnd): boolean {
  return (
    head.firstSequence === previous.lastSequence + 1 &&
    head.firstBatch === previous.lastBatch + 1 &&
    head.clusterId === previous.head.clusterId
  );
}

function follows(batch: DecodedBatch, end: LogEnd): boolean {
  return (
    batch.segmentId === end.head.segmentId &&
    batch.batch === end.lastBatch + 1 &&
    batch.firstSequence === end.lastSequence + 1
  );
}

/** Delivers the commands of a batch. @param termBefore the term of the last record before the batch. */
async function deliver(
  batch: DecodedBatch,
  termBefore: number,
  { after, onCommand }: RecoverOptions,
  slices: Slices,
): Promise<void> {
  if (slices.isOver(batchHeadBytes + batch.records.length * passedBytes)) await nextTurn();
  let term = termBefore;
  for (const [number, record] of batch.records.entries()) {
    const sequence = batch.firstSequence + number;
    if (record.kind === "term") term = record.term;
    if (record.kind !== "command" || sequence <= after) continue;
    onCommand(sequence, record.bytes, term);
    if (slices.isOver(record.bytes.length + commandOverheadBytes)) await nextTurn();
  }
}

function endAfter(batch: DecodedBatch, end: LogEnd): LogEnd {
  const terms = batch.records.flatMap((record) => (record.kind === "term" ? [record.term] : []));
  return {
    ...end,
    size: end.size + batch.bytes,
    lastBatch: batch.batch,
    lastSequence: end.lastSequence + batch.records.length,
    term: Math.max(end.term, ...terms),
    isSealed: batch.records.at(-1)?.kind === "seal",
  };
}

/** True if a whole later batch follows the damage. Such a batch proves that the damaged bytes were synced once. */
function holdsLaterBatch(segment: Buffer, end: LogEnd): boolean {
  for (let at = nextMagic(segment, end.size); at >= 0; at = nextMagic(segment, at + 1)) {
    const batch = decodeBatch(segment, at);
    if (batch?.segmentId === end.head.segmentId && batch.batch > end.lastBatch + 1) return true;
  }
  return false;
}

function nextMagic(segment: Buffer, from: number): number {
  const at = segment.indexOf(batchMagic, from);
  return at + batchHeadBytes > segment.length ? -1 : at;
}

function damaged(path: string, position: number): WalError {
  const what = `damaged at byte ${position}, before writes that were acknowledged`;
  return new WalError("damaged", `Reading "${path}": ${what}; ${startOverAdvice}`);
}
