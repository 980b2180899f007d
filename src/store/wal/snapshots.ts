/**
 * Snapshots beside the log. `<sequence, 16 digits>.snapshot`, numbers little-endian:
 *
 *   head     0  8  "DAVITSNP"      8  4  format version     12  4  CRC-32 of the rest of the head
 *           16  8  cluster id     24  8  sequence of the last record that it holds
 *   body    32     the state; opaque here
 *   tail        8  length of the body      4  CRC-32 of the body      4  "DEND"
 *
 * The tail comes last so that a state may be written in pieces while its length is not known.
 */

import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Files } from "../../lib/files.ts";
import { writeWholeFile } from "../../lib/whole-file.ts";
import { newerFormat, type Snapshot } from "../log-port.ts";

const formatVersion = 1;
const headBytes = 32;
const tailBytes = 16;
const headMagic = Buffer.from("DAVITSNP", "latin1");
const tailMagic = Buffer.from("DEND", "latin1");

// The older one is for the day on which the newer one cannot be read.
const keptSnapshots = 2;

const snapshotName = /^\d{16}\.snapshot$/;

export interface StoredSnapshot extends Snapshot {
  readonly clusterId: bigint;
}

/** Saves a state and removes all but the two newest. */
export async function saveSnapshotFile(
  files: Files,
  directory: string,
  { clusterId, sequence }: Pick<StoredSnapshot, "clusterId" | "sequence">,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  const name = `${String(sequence).padStart(16, "0")}.snapshot`;
  await writeWholeFile(files, directory, name, framed(clusterId, sequence, pieces));
  const names = await listSnapshots(files, directory);
  for (const old of names.slice(0, -keptSnapshots)) await files.remove(join(directory, old));
}

/**
 * The newest snapshot that is whole.
 * @throws {WalError} newerFormat.
 */
export async function loadSnapshotFile(files: Files, directory: string): Promise<StoredSnapshot | undefined> {
  const names = await listSnapshots(files, directory);
  for (const name of names.toReversed()) {
    const path = join(directory, name);
    const snapshot = decode(await files.read(path), path);
    if (snapshot !== undefined) return snapshot;
  }
  return undefined;
}

async function listSnapshots(files: Files, directory: string): Promise<readonly string[]> {
  return (await files.list(directory)).filter((name) => snapshotName.test(name));
}

async function* framed(
  clusterId: bigint,
  sequence: number,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncIterable<Uint8Array> {
  const head = Buffer.alloc(headBytes);
  headMagic.copy(head);
  head.writeUInt32LE(formatVersion, 8);
  head.writeBigUInt64LE(clusterId, 16);
  head.writeBigUInt64LE(BigInt(sequence), 24);
  head.writeUInt32LE(crc32(head.subarray(16)), 12);
  yield head;
  let length = 0;
  let crc = 0;
  for await (const piece of pieces) {
    length += piece.length;
    crc = crc32(piece, crc);
    yield piece;
  }
  const tail = Buffer.alloc(tailBytes);
  tail.writeBigUInt64LE(BigInt(length));
  tail.writeUInt32LE(crc, 8);
  tailMagic.copy(tail, 12);
  yield tail;
}

function decode(bytes: Buffer, path: string): StoredSnapshot | undefined {
  if (bytes.length < headBytes + tailBytes || !bytes.subarray(0, 8).equals(headMagic)) return undefined;
  const version = bytes.readUInt32LE(8);
  if (version > formatVersion) throw newerFormat(`"${path}"`, version, formatVersion);
  const body = bytes.subarray(headBytes, -tailBytes);
  const tail = bytes.subarray(-tailBytes);
  const isWhole =
    bytes.readUInt32LE(12) === crc32(bytes.subarray(16, headBytes)) &&
    tail.readBigUInt64LE(0) === BigInt(body.length) &&
    tail.readUInt32LE(8) === crc32(body) &&
    tail.subarray(12).equals(tailMagic);
  if (!isWhole) return undefined;
  return { clusterId: bytes.readBigUInt64LE(16), sequence: Number(bytes.readBigUInt64LE(24)), bytes: body };
}
