/**
 * The format of a backup, version 1: lines of JSON in UTF-8, each ended by a newline.
 *
 *   {"backup":1,"clusterId":"…","index":12,"raftIndex":15,"raftTerm":3,"atMs":…}     the first line; at most 1 KiB
 *   …                                             the state at that index as `snapshot.ts` has it, without a history
 *   {"sha256":"…"}                                the last line: the sum in hex of every byte before it
 *
 * The sum comes last, so that a state can be written during the walk over it. A file without its last line was cut, and
 * is refused. A field can be added without a new version if lines without the field keep their meaning.
 */

import { createHash } from "node:crypto";
import { type Decoder, number, object, parsed, text } from "../../lib/shape.ts";
import { newerFormat, WalError } from "../core/log-port.ts";

export const backupVersion = 1;
const maxHeadBytes = 1024;
const newline = 0x0a;

/** Where a backup comes from. */
export interface BackupHead {
  readonly clusterId: string;
  /** The index of the last change in the backup. */
  readonly index: number;
  readonly raftIndex: number;
  readonly raftTerm: number;
  /** When it was taken, Unix milliseconds. */
  readonly atMs: number;
}

const headShape: Decoder<BackupHead> = object({
  clusterId: text,
  index: number,
  raftIndex: number,
  raftTerm: number,
  atMs: number,
});

/** The bytes of a backup: its first line, the state, and its last line. */
export async function* framedBackup(head: BackupHead, state: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const hash = createHash("sha256");
  const first = Buffer.from(`${JSON.stringify({ backup: backupVersion, ...head })}\n`);
  hash.update(first);
  yield first;
  for await (const slice of state) {
    hash.update(slice);
    yield slice;
  }
  yield Buffer.from(lastLine(hash.digest("hex")));
}

function lastLine(sha256: string): string {
  return `${JSON.stringify({ sha256 })}\n`;
}

const lastLineBytes = lastLine("0".repeat(64)).length;

/** Parses a backup from pieces of any length. Only `end` can say whether the backup is whole. */
export class BackupReader {
  readonly #name: string;
  readonly #hash = createHash("sha256");
  #head: BackupHead | undefined;
  /**
   * Bytes that `push` could not classify yet: first an unfinished first line, later the newest bytes, which may be the
   * last line.
   */
  #held: Buffer = Buffer.alloc(0);
  #size = 0;

  /** @param name the backup's name for messages. */
  constructor(name: string) {
    this.#name = name;
  }

  /** The first line; undefined until it was read. */
  get head(): BackupHead | undefined {
    return this.#head;
  }

  /** How many bytes were read. */
  get size(): number {
    return this.#size;
  }

  /**
   * Takes the next bytes.
   * @returns the next bytes of the state. It holds back the newest bytes, which may be the last line.
   * @throws {WalError} damaged, for anything but a backup; newerFormat.
   */
  push(piece: Uint8Array): Uint8Array {
    this.#size += piece.length;
    let bytes = Buffer.concat([this.#held, piece]);
    if (this.#head === undefined) {
      const firstBytes = bytes.subarray(0, maxHeadBytes).indexOf(newline) + 1;
      if (firstBytes === 0) return this.#holdFirst(bytes);
      const first = bytes.subarray(0, firstBytes);
      this.#head = this.#decodeHead(first);
      this.#hash.update(first);
      bytes = bytes.subarray(firstBytes);
    }
    const lastAt = Math.max(0, bytes.length - lastLineBytes);
    const state = bytes.subarray(0, lastAt);
    this.#held = bytes.subarray(lastAt);
    this.#hash.update(state);
    return state;
  }

  /** Call it after the last bytes. @throws {WalError} damaged, unless the backup is whole. */
  end(): BackupHead {
    if (this.#head === undefined) throw this.#damaged("it is no backup of davit");
    const expected = lastLine(this.#hash.copy().digest("hex"));
    if (this.#held.equals(Buffer.from(expected))) return this.#head;
    const isCut = !/^\{"sha256":"[0-9a-f]{64}"\}\n$/.test(this.#held.toString("latin1"));
    if (isCut) throw this.#damaged(`it was cut: at byte ${this.#size} it ends without its last line`);
    throw this.#damaged(`bytes 0 to ${this.#size - 1} are not what its checksum says`);
  }

  #holdFirst(bytes: Buffer): Uint8Array {
    if (bytes.length >= maxHeadBytes) throw this.#damaged("it is no backup of davit");
    this.#held = bytes;
    return bytes.subarray(0, 0);
  }

  #decodeHead(line: Buffer): BackupHead {
    const json = line.toString();
    const found = parsed(object({ backup: number }), json)?.backup;
    if (found === undefined) throw this.#damaged("it is no backup of davit");
    // The version is read before the sum is checked, because a later version may have its sum elsewhere.
    if (found > backupVersion) throw newerFormat(this.#name, found, backupVersion);
    const head = parsed(headShape, json);
    if (head === undefined) throw this.#damaged("at byte 0 its first line is not what davit writes");
    return head;
  }

  #damaged(what: string): WalError {
    return new WalError("damaged", `Reading ${this.#name}: ${what}`);
  }
}
