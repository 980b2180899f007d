/**
 * A batch of records as bytes:
 *
 *   1 byte    the least version that a reader must know; a davit that knows less loses the log, and its operator reads
 *             why. Version 2 came with the command `extend`
 *   1 byte    kind: records, begin of a term, or large
 *   8 bytes   time of the leader's clock when the batch was made, Unix milliseconds as a 64-bit float
 *   4 bytes   term of that leader
 *   4 bytes   number of records; then, for each one, 4 bytes of length and the record
 *
 * All numbers are big-endian. A batch that begins a term has one record and the time of the new leader. A large batch
 * has the number and the sum of its pieces as JSON in place of its records: its frame is in keys of their own, written
 * before the batch.
 */

import { createHash } from "node:crypto";
import { object, parsed, text, whole } from "../../lib/shape.ts";
import { newerFormat, WalError } from "../core/log-port.ts";
import type { BatchName, LogPlace } from "./layout.ts";

type BatchKind = "records" | "term" | "large";

/** A time by the clock of a leader, named by its term. */
export interface LeaderTime {
  readonly atMs: number;
  readonly term: number;
}

export interface BatchFrame {
  readonly kind: BatchKind;
  readonly clock: LeaderTime;
  /** One for each record; of a large batch, one that says where they are. They are views of the decoded bytes. */
  readonly records: readonly Uint8Array[];
}

/** What a davit must know to read the batches of this one. It reads all earlier versions. */
const minReader = 2;
const kinds: readonly BatchKind[] = ["records", "term", "large"];
const headBytes = 18;
const lengthBytes = 4;

/** The size of a frame with one record of this many bytes, or what the record adds to a frame, nearly. */
export function framedBytes(recordBytes: number): number {
  return lengthBytes + recordBytes;
}

export function encodeBatch({ kind, clock, records }: BatchFrame): Uint8Array {
  const size = records.reduce((sum, { length }) => sum + framedBytes(length), headBytes);
  const bytes = Buffer.allocUnsafe(size);
  bytes.writeUInt8(minReader, 0);
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

/** @throws {WalError} newerFormat for a later version; damaged for what no davit wrote. */
export function decodeBatch(value: Uint8Array): BatchFrame {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const found = bytes[0] ?? 0;
  if (found > minReader) throw newerFormat("a batch of the log in etcd", found, minReader);
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

const pieceBytes = 1024 * 1024;
const largeShape = object({ pieces: whole, sha256: text });

/** Writes the pieces of a batch that is too large for one key. @returns the value of the batch. @throws {EtcdError} */
export async function saveLarge(
  { client, layout }: LargePlace,
  name: BatchName,
  frame: BatchFrame,
): Promise<Uint8Array> {
  const bytes = encodeBatch(frame);
  let pieces = 0;
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const put = { key: layout.piece(name, pieces), value: bytes.subarray(at, at + pieceBytes) };
    await client.txn({ success: [{ put }] }, { repeat: true });
    pieces += 1;
  }
  const large = { pieces, sha256: hashOf([bytes]) };
  return encodeBatch({ kind: "large", clock: frame.clock, records: [Buffer.from(JSON.stringify(large))] });
}

/** Reads the frame that `saveLarge` wrote. @throws {EtcdError}; {WalError} damaged. */
export async function fetchLarge(
  { client, layout }: LargePlace,
  name: BatchName,
  { records: [record] }: BatchFrame,
): Promise<BatchFrame> {
  const large = parsed(largeShape, Buffer.from(record ?? []).toString());
  if (large === undefined) throw damagedBatch();
  const pieces: Uint8Array[] = [];
  while (pieces.length < large.pieces) {
    const { keys } = await client.range({ key: layout.piece(name, pieces.length) });
    if (keys[0] === undefined) throw incompleteBatch();
    pieces.push(keys[0].value);
  }
  if (hashOf(pieces) !== large.sha256) throw incompleteBatch();
  return decodeBatch(Buffer.concat(pieces));
}

type LargePlace = Pick<LogPlace, "client" | "layout">;

function hashOf(pieces: readonly Uint8Array[]): string {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return hash.digest("hex");
}

function incompleteBatch(): WalError {
  return new WalError("damaged", "Reading the log in etcd: pieces of a large batch are missing; restore a backup");
}
