/**
 * The format of the log, version 2. Pure: it turns records into bytes and back. Numbers are little-endian.
 *
 * A directory holds segments `<first sequence, 16 digits>.log`. A segment is a head and then batches, without gaps:
 *
 *   head    0  8  "DAVITLOG"
 *           8  4  format version; the whole segment has this format
 *          12  4  CRC-32 of the rest of the head
 *          16  8  segment id, random
 *          24  8  cluster id      32  8  member id      40  8  term
 *          48  8  number of the first batch      56  8  first sequence
 *          64  8  flags. 1: the previous segment ends before this one's first batch, even if it has more bytes
 *
 * Every later version keeps these 72 bytes. In version 1, the head has 64 bytes and no flags, and the CRC leaves out
 * the first 16 bytes.
 *
 *   batch   0  4  FF 64 76 74; the byte FF never occurs in UTF-8, so a value cannot look like a batch
 *           4  4  length of the body
 *           8  8  segment id, so that a stale disk block of another file is not read as a batch
 *          16  8  batch number      24  8  sequence of the first record
 *          32  4  CRC-32 of bytes 0 to 31 and the body
 *          36     body: records
 *
 *   record  0  1  kind: 1 term (8 bytes: the term), 2 command (opaque here), 3 seal (empty: a clean stop)
 *           1  4  length of the content
 *           5     content
 *
 * One write and one fdatasync bring a batch to disk. davit writes batch n+1 only after the sync of batch n. So a whole
 * batch with a higher number after a damaged batch n proves that n was synced, and that the damage is real. Without
 * such a batch, n counts as a write that a crash tore and that davit never acknowledged.
 */

import { crc32 } from "node:zlib";

export const formatVersion = 2;
export const segmentHeadBytes = 72;
const firstHeadBytes = 64;
export const batchHeadBytes = 36;
const recordHeadBytes = 5;

const segmentMagic = Buffer.from("DAVITLOG", "latin1");
/** The first bytes of every batch. */
export const batchMagic: Uint8Array = Uint8Array.of(0xff, 0x64, 0x76, 0x74);

const kindNumbers = { term: 1, command: 2, seal: 3 } as const;

/** A record of the log. Only commands are delivered to the store. */
export type LogRecord =
  | { readonly kind: "term"; readonly term: number }
  | { readonly kind: "command"; readonly bytes: Uint8Array }
  | { readonly kind: "seal" };

export interface SegmentHead {
  readonly segmentId: bigint;
  readonly clusterId: bigint;
  readonly memberId: bigint;
  readonly term: number;
  readonly firstBatch: number;
  readonly firstSequence: number;
  /**
   * True if the sync of the previous segment failed. That segment then ends where this one begins, even if it has more
   * bytes.
   */
  readonly endsPrevious: boolean;
}

export interface BatchPosition {
  readonly segmentId: bigint;
  readonly batch: number;
  readonly firstSequence: number;
}

/** A batch that was read. `bytes` is its length in the file. */
export interface DecodedBatch extends BatchPosition {
  readonly records: readonly LogRecord[];
  readonly bytes: number;
}

export type DecodedHead =
  | { readonly kind: "head"; readonly head: SegmentHead; readonly version: number; readonly bytes: number }
  | { readonly kind: "newerFormat"; readonly version: number }
  | { readonly kind: "invalid" };

export function encodeSegmentHead(head: SegmentHead): Uint8Array {
  const bytes = Buffer.alloc(segmentHeadBytes);
  segmentMagic.copy(bytes);
  bytes.writeUInt32LE(formatVersion, 8);
  bytes.writeBigUInt64LE(head.segmentId, 16);
  bytes.writeBigUInt64LE(head.clusterId, 24);
  bytes.writeBigUInt64LE(head.memberId, 32);
  bytes.writeBigUInt64LE(BigInt(head.term), 40);
  bytes.writeBigUInt64LE(BigInt(head.firstBatch), 48);
  bytes.writeBigUInt64LE(BigInt(head.firstSequence), 56);
  bytes.writeBigUInt64LE(head.endsPrevious ? endsPreviousFlag : 0n, 64);
  bytes.writeUInt32LE(headCrc(bytes), 12);
  return bytes;
}

const endsPreviousFlag = 1n;

/**
 * Reads a segment's head. From version 2 on, the CRC covers the version, so a version is trusted only with a correct
 * CRC.
 */
export function decodeSegmentHead(segment: Buffer): DecodedHead {
  if (segment.length < firstHeadBytes || !segment.subarray(0, 8).equals(segmentMagic)) return { kind: "invalid" };
  const version = segment.readUInt32LE(8);
  const isFirst = version === 1;
  const crc = isFirst ? crc32(segment.subarray(16, firstHeadBytes)) : headCrc(segment);
  if (version === 0 || segment.readUInt32LE(12) !== crc) return { kind: "invalid" };
  if (version > formatVersion) return { kind: "newerFormat", version };
  const head = {
    segmentId: segment.readBigUInt64LE(16),
    clusterId: segment.readBigUInt64LE(24),
    memberId: segment.readBigUInt64LE(32),
    term: Number(segment.readBigUInt64LE(40)),
    firstBatch: Number(segment.readBigUInt64LE(48)),
    firstSequence: Number(segment.readBigUInt64LE(56)),
    endsPrevious: !isFirst && segment.readBigUInt64LE(64) === endsPreviousFlag,
  };
  return { kind: "head", head, version, bytes: isFirst ? firstHeadBytes : segmentHeadBytes };
}

/** Returns the bytes of a batch. For a large batch it yields from time to time. */
export function* encodeBatch(
  { segmentId, batch, firstSequence }: BatchPosition,
  records: readonly LogRecord[],
): Generator<undefined, Buffer> {
  const contents = records.map(contentOf);
  const bodyBytes = contents.reduce((sum, content) => sum + recordHeadBytes + content.length, 0);
  const bytes = Buffer.allocUnsafe(batchHeadBytes + bodyBytes);
  bytes.set(batchMagic);
  bytes.writeUInt32LE(bodyBytes, 4);
  bytes.writeBigUInt64LE(segmentId, 8);
  bytes.writeBigUInt64LE(BigInt(batch), 16);
  bytes.writeBigUInt64LE(BigInt(firstSequence), 24);
  let at = batchHeadBytes;
  for (const [number, { kind }] of records.entries()) {
    const content = contents[number] ?? nothing;
    bytes.writeUInt8(kindNumbers[kind], at);
    bytes.writeUInt32LE(content.length, at + 1);
    yield* copy(content, bytes.subarray(at + recordHeadBytes));
    at += recordHeadBytes + content.length;
  }
  let crc = crc32(bytes.subarray(0, 32));
  for (at = batchHeadBytes; at < bytes.length; at += stepBytes) {
    if (at > batchHeadBytes) yield undefined;
    crc = crc32(bytes.subarray(at, at + stepBytes), crc);
  }
  bytes.writeUInt32LE(crc, 32);
  return bytes;
}

// Copying this many bytes, or computing their CRC, takes less than a millisecond.
const stepBytes = 1024 * 1024;

function* copy(from: Uint8Array, to: Uint8Array): Generator<undefined, void> {
  for (let at = 0; at < from.length; at += stepBytes) {
    if (at > 0) yield undefined;
    to.set(from.subarray(at, at + stepBytes), at);
  }
}

/** Reads the batch at `position`; undefined if it is damaged or not whole. Its contents are views of `segment`. */
export function decodeBatch(segment: Buffer, position: number): DecodedBatch | undefined {
  const bodyAt = position + batchHeadBytes;
  if (bodyAt > segment.length || !segment.subarray(position, position + 4).equals(batchMagic)) return undefined;
  const endAt = bodyAt + segment.readUInt32LE(position + 4);
  if (endAt > segment.length) return undefined;
  const bytes = segment.subarray(position, endAt);
  if (bytes.readUInt32LE(32) !== batchCrc(bytes)) return undefined;
  const records = decodeRecords(bytes.subarray(batchHeadBytes));
  if (records === undefined) return undefined;
  return {
    segmentId: bytes.readBigUInt64LE(8),
    batch: Number(bytes.readBigUInt64LE(16)),
    firstSequence: Number(bytes.readBigUInt64LE(24)),
    records,
    bytes: bytes.length,
  };
}

function decodeRecords(body: Buffer): readonly LogRecord[] | undefined {
  const records: LogRecord[] = [];
  let at = 0;
  while (at + recordHeadBytes <= body.length) {
    const contentAt = at + recordHeadBytes;
    const endAt = contentAt + body.readUInt32LE(at + 1);
    const record = endAt > body.length ? undefined : recordFrom(body.readUInt8(at), body.subarray(contentAt, endAt));
    if (record === undefined) return undefined;
    records.push(record);
    at = endAt;
  }
  return at === body.length && records.length > 0 ? records : undefined;
}

function recordFrom(kindNumber: number, content: Buffer): LogRecord | undefined {
  if (kindNumber === kindNumbers.command) return { kind: "command", bytes: content };
  if (kindNumber === kindNumbers.seal) return content.length === 0 ? { kind: "seal" } : undefined;
  const isTerm = kindNumber === kindNumbers.term && content.length === 8;
  return isTerm ? { kind: "term", term: Number(content.readBigUInt64LE(0)) } : undefined;
}

const nothing = new Uint8Array(0);

function contentOf(record: LogRecord): Uint8Array {
  if (record.kind === "command") return record.bytes;
  if (record.kind === "seal") return nothing;
  const content = Buffer.alloc(8);
  content.writeBigUInt64LE(BigInt(record.term));
  return content;
}

function headCrc(bytes: Buffer): number {
  return crc32(bytes.subarray(16, segmentHeadBytes), crc32(bytes.subarray(0, 12)));
}

function batchCrc(bytes: Buffer): number {
  return crc32(bytes.subarray(batchHeadBytes), crc32(bytes.subarray(0, 32)));
}
