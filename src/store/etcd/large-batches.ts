/** Batches that are too large for one key: their frame is in pieces of its own, written before the batch. */

import { createHash } from "node:crypto";
import { WalError } from "../core/log-port.ts";
import { numberFrom, objectFrom, parseJson, textFrom } from "../core/stored-json.ts";
import { type BatchFrame, decodeBatch, encodeBatch, type LargeBatch } from "./batch-frame.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import { bytesOf } from "./client/messages.ts";
import type { FormatLevel } from "./format-level.ts";
import type { BatchName, Layout } from "./layout.ts";

export interface LargeBatchesOptions {
  readonly client: EtcdClient;
  readonly layout: Layout;
  readonly formats: FormatLevel;
}

const pieceBytes = 1024 * 1024;

export class LargeBatches {
  readonly #client: EtcdClient;
  readonly #layout: Layout;
  readonly #formats: FormatLevel;

  constructor({ client, layout, formats }: LargeBatchesOptions) {
    this.#client = client;
    this.#layout = layout;
    this.#formats = formats;
  }

  /** Writes a frame in pieces. @returns the value of the batch. @throws {EtcdError} */
  async save(name: BatchName, frame: BatchFrame): Promise<Uint8Array> {
    const { level } = this.#formats;
    const bytes = encodeBatch(frame, level);
    let pieces = 0;
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const put = { key: this.#layout.piece(name, pieces), value: bytes.subarray(at, at + pieceBytes) };
      await this.#client.txn({ success: [{ put }] }, { repeat: true });
      pieces += 1;
    }
    const large: LargeBatch = { pieces, sha256: hashOf([bytes]) };
    return encodeBatch({ kind: "large", clock: frame.clock, records: [bytesOf(JSON.stringify(large))] }, level);
  }

  /** Reads the frame that `save` wrote. @throws {EtcdError}; {WalError} damaged. */
  async fetch(name: BatchName, { records }: BatchFrame): Promise<BatchFrame> {
    const large = largeFrom(records[0]);
    const pieces: Uint8Array[] = [];
    while (pieces.length < large.pieces) {
      const { keys } = await this.#client.range({ key: this.#layout.piece(name, pieces.length) });
      if (keys[0] === undefined) throw incomplete();
      pieces.push(keys[0].value);
    }
    if (hashOf(pieces) !== large.sha256) throw incomplete();
    return decodeBatch(Buffer.concat(pieces), this.#formats.known);
  }
}

function largeFrom(record: Uint8Array | undefined): LargeBatch {
  if (record === undefined) throw incomplete();
  const fields = objectFrom(parseJson(record));
  return { pieces: numberFrom(fields.pieces), sha256: textFrom(fields.sha256) };
}

function hashOf(pieces: readonly Uint8Array[]): string {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return hash.digest("hex");
}

function incomplete(): WalError {
  return new WalError("damaged", "Reading the log in etcd: pieces of a large batch are missing; restore a backup");
}
