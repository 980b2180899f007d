/**
 * A batch of records as bytes:
 *
 *   1 byte    version, 1 or 2; members write the one that all of them know (`format-level.ts`)
 *   1 byte    kind: records, begin of a term, or large
 *   8 bytes   time of the leader's clock when the batch was made, Unix milliseconds as a 64-bit float
 *   4 bytes   term of that leader
 *   4 bytes   number of records; then, for each one, 4 bytes of length and the record
 *
 * All numbers are big-endian. A batch that begins a term has one record and the time of the new leader. A large batch
 * has `LargeBatch` as JSON in place of its records.
 */

import { newerFormat, WalError } from "../core/log-port.ts";

export type BatchKind = "records" | "term" | "large";

/** A time by the clock of a leader, named by its term. */
export interface LeaderTime {
  readonly atMs: number;
  readonly term: number;
}

export interface BatchFrame {
  readonly kind: BatchKind;
  readonly clock: LeaderTime;
  /** One for each record; of a large batch, one with a `LargeBatch`. They are views of the decoded bytes. */
  readonly records: readonly Uint8Array[];
}

/** Where the frame of a large batch is. */
export interface LargeBatch {
  readonly pieces: number;
  readonly sha256: string;
}

/** From this version on, records may have the command `extend`. */
export const extendFormat = 2;
/** The latest version that this davit knows. */
export const batchVersion = 2;
const kinds: readonly BatchKind[] = ["records", "term", "large"];
const headBytes = 18;
const lengthBytes = 4;

/** The size of a frame with one record of this many bytes, or what the record adds to a frame, nearly. */
export function framedBytes(recordBytes: number): number {
  return lengthBytes + recordBytes;
}

/** @param version see `FormatLevel.level`. */
export function encodeBatch({ kind, clock, records }: BatchFrame, version: number): Uint8Array {
  const size = records.reduce((sum, { length }) => sum + framedBytes(length), headBytes);
  const bytes = Buffer.allocUnsafe(size);
  bytes.writeUInt8(version, 0);
  bytes.writeUInt8(kinds.indexOf(kind), 1);
  bytes.writeDoubleBE(clock.atMs, 2);
  bytes.writeUInt32BE(clock.term, 10);
  bytes.writeUInt32BE(records.length, 14);
  let at = headBytes;
  for (const record of records) {
    bytes.writeUInt32BE(record.length, at);
    bytes.set(record, at + lengthBytes);
    at += framedBytes(record.length);
  }
  return bytes;
}

/**
 * @param known see `FormatLevel.known`.
 * @throws {WalError} newerFormat for a later version; damaged for what no davit wrote.
 */
export function decodeBatch(value: Uint8Array, known: number): BatchFrame {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const found = bytes[0] ?? 0;
  if (found > known) throw newerFormat("a batch of the log in etcd", found, known);
  const kind = kinds[bytes[1] ?? -1];
  if (found === 0 || kind === undefined || bytes.length < headBytes) throw damagedBatch();
  const records: Uint8Array[] = [];
  const count = bytes.readUInt32BE(14);
  let at = headBytes;
  while (records.length < count) {
    if (at + lengthBytes > bytes.length) throw damagedBatch();
    const end = at + lengthBytes + bytes.readUInt32BE(at);
    if (end > bytes.length) throw damagedBatch();
    records.push(bytes.subarray(at + lengthBytes, end));
    at = end;
  }
  return { kind, clock: { atMs: bytes.readDoubleBE(2), term: bytes.readUInt32BE(10) }, records };
}

function damagedBatch(): WalError {
  return new WalError("damaged", "Reading the log in etcd: a batch has bytes that no davit wrote; restore a backup");
}
