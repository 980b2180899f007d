/**
 * The frame of a snapshot, `<sequence, 16 digits>.snapshot`. Pure. Numbers are little-endian:
 *
 *   head     0  8  "DAVITSNP"      8  4  format version     12  4  CRC-32 of the rest of the head
 *           16  8  cluster id     24  8  sequence of the last record in the state
 *   body    32     the state; opaque here
 *   tail        8  length of the body      4  CRC-32 of the body      4  "DEND"
 *
 * The tail has the length, because the state is written in pieces and its length is known only at the end. This is
 * version 2. The CRC of version 1 leaves out the first 16 bytes of the head.
 */

import { crc32 } from "node:zlib";
import { newerFormat } from "../core/log-port.ts";

const formatVersion = 2;
const headBytes = 32;
const tailBytes = 16;
const headMagic = Buffer.from("DAVITSNP", "latin1");
const tailMagic = Buffer.from("DEND", "latin1");

export interface SnapshotHead {
  readonly clusterId: bigint;
  readonly sequence: number;
}

/** The bytes of a snapshot: its head, the state, and its tail. */
export async function* framed(
  { clusterId, sequence }: SnapshotHead,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncIterable<Uint8Array> {
  const head = Buffer.alloc(headBytes);
  headMagic.copy(head);
  head.writeUInt32LE(formatVersion, 8);
  head.writeBigUInt64LE(clusterId, 16);
  head.writeBigUInt64LE(BigInt(sequence), 24);
  head.writeUInt32LE(headCrc(head), 12);
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

/** Parses a snapshot from pieces of any length. Only after the last piece, `isWhole` says whether it was whole. */
export class SnapshotReader {
  readonly #path: string;
  #head: SnapshotHead | undefined;
  #isHeadRead = false;
  /**
   * Bytes that `push` could not classify yet: first an unfinished head, later the newest bytes, which may be the tail.
   */
  #held: Buffer = Buffer.alloc(0);
  #length = 0;
  #crc = 0;

  /** @param path the snapshot's path for messages. */
  constructor(path: string) {
    this.#path = path;
  }

  /** The head; undefined before it was read, and if the file is no snapshot. */
  get head(): SnapshotHead | undefined {
    return this.#head;
  }

  /** True if the bytes so far are a whole snapshot. */
  get isWhole(): boolean {
    const tail = this.#held;
    return (
      this.#head !== undefined &&
      tail.length === tailBytes &&
      tail.readBigUInt64LE(0) === BigInt(this.#length) &&
      tail.readUInt32LE(8) === this.#crc &&
      tail.subarray(12).equals(tailMagic)
    );
  }

  /**
   * Takes the next bytes of the file.
   * @returns the next bytes of the body, in parts. It holds back the newest bytes, which may be the tail.
   * @throws {WalError} newerFormat.
   */
  push(piece: Uint8Array): readonly Uint8Array[] {
    if (this.#isHeadRead && piece.length >= tailBytes) {
      // A copy of every large piece would cost more than its checksum.
      const parts = [this.#held, piece.subarray(0, piece.length - tailBytes)];
      this.#held = Buffer.from(piece.subarray(piece.length - tailBytes));
      return this.#counted(parts);
    }
    const bytes = Buffer.concat([this.#held, piece]);
    const bodyAt = this.#isHeadRead ? 0 : headBytes;
    if (bytes.length < bodyAt) {
      this.#held = bytes;
      return [];
    }
    if (!this.#isHeadRead) this.#head = this.#decodeHead(bytes);
    this.#isHeadRead = true;
    const tailAt = Math.max(bodyAt, bytes.length - tailBytes);
    this.#held = bytes.subarray(tailAt);
    return this.#counted([bytes.subarray(bodyAt, tailAt)]);
  }

  #counted(parts: readonly Uint8Array[]): readonly Uint8Array[] {
    for (const part of parts) {
      this.#length += part.length;
      this.#crc = crc32(part, this.#crc);
    }
    return parts;
  }

  #decodeHead(bytes: Buffer): SnapshotHead | undefined {
    if (!bytes.subarray(0, 8).equals(headMagic)) return undefined;
    const version = bytes.readUInt32LE(8);
    const crc = version === 1 ? crc32(bytes.subarray(16, headBytes)) : headCrc(bytes);
    if (version === 0 || bytes.readUInt32LE(12) !== crc) return undefined;
    if (version > formatVersion) throw newerFormat(`"${this.#path}"`, version, formatVersion);
    return { clusterId: bytes.readBigUInt64LE(16), sequence: Number(bytes.readBigUInt64LE(24)) };
  }
}

function headCrc(head: Buffer): number {
  return crc32(head.subarray(16, headBytes), crc32(head.subarray(0, 12)));
}
