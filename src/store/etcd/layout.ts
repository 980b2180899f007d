/**
 * The keys of a log in etcd, below a prefix that belongs to one davit cluster:
 *
 *   meta                        {"cluster":"…"}: made once
 *   epoch                       the number of the present epoch; a snapshot begins the next one
 *   l/head                      the batch id of the last batch. Its version is that batch's place in the log
 *   l/<epoch>/<batch id>        a batch (`batch-frame.ts`); never written twice
 *   b/<epoch>/<batch id>/<i>    pieces of a batch that is too large for one key
 *   snap/current                which snapshot is valid (`snapshots.ts`)
 *   snap/<sequence>/<i>         its pieces
 *   leader                      the leader, as long as its lease lasts (`election.ts`)
 *   members/<id>                every running member, as long as its lease lasts
 *   moved                       where the store is now, if it was moved: then no davit starts here
 *
 * A batch id is "<run of its writer>/<number>". Davits of version 0.2 may have left the key `level`, between `leader`
 * and `members/`. It counts for nothing.
 */

import type { EtcdClient, EtcdKey } from "../../../packages/etcd-client/src/etcd-client.ts";
import type { Clock } from "../../lib/clock.ts";
import { type Decoder, parsed } from "../../lib/shape.ts";
import { movedAway, movedName, WalError } from "../core/log-port.ts";

/** Where a log is, and what reaches it. */
export interface LogPlace {
  readonly client: EtcdClient;
  readonly layout: Layout;
  readonly clock: Clock;
}

/** Keys from `key` to before `end`. */
export interface KeyRange {
  readonly key: string;
  readonly end: string;
}

/** A batch key, taken apart. */
export interface BatchName {
  readonly epoch: number;
  readonly id: string;
}

export class Layout {
  readonly meta: string;
  readonly epoch: string;
  readonly head: string;
  readonly current: string;
  readonly leader: string;
  readonly moved: string;
  /** Every key. */
  readonly all: KeyRange;
  /** The head and every batch. */
  readonly log: KeyRange;
  /** The pieces of every large batch. */
  readonly pieces: KeyRange;
  readonly members: KeyRange;
  /** The leader and every member. */
  readonly membership: KeyRange;
  readonly snapshots: KeyRange;
  readonly #prefix: string;

  /** @param prefix ends with a slash. */
  constructor(prefix: string) {
    this.#prefix = prefix;
    this.meta = `${prefix}meta`;
    this.epoch = `${prefix}epoch`;
    this.head = `${prefix}l/head`;
    this.current = `${prefix}snap/current`;
    this.leader = `${prefix}leader`;
    this.moved = `${prefix}${movedName}`;
    this.all = below(prefix);
    this.log = below(`${prefix}l/`);
    this.pieces = below(`${prefix}b/`);
    this.members = below(`${prefix}members/`);
    this.membership = { key: this.leader, end: prefixEnd(`${prefix}members/`) };
    this.snapshots = below(`${prefix}snap/`);
  }

  batch({ epoch, id }: BatchName): string {
    return `${this.#prefix}l/${epoch}/${id}`;
  }

  /** The name of a batch key; undefined for any other key, even one that no davit wrote. */
  batchName(key: string): BatchName | undefined {
    const [, epoch, id] = /^(0|[1-9]\d{0,14})\/([^/]+\/\d+)$/.exec(key.slice(this.log.key.length)) ?? [];
    return epoch === undefined || id === undefined ? undefined : { epoch: Number(epoch), id };
  }

  /** The present epoch; undefined for what no davit wrote. @param found the key `epoch`. */
  epochIn(found: EtcdKey | undefined): number | undefined {
    const written = found === undefined ? "" : Buffer.from(found.value).toString();
    return /^(0|[1-9]\d{0,14})$/.test(written) ? Number(written) : undefined;
  }

  /** Batches in a wrong epoch may be deleted before a snapshot has them. So davit writes none. */
  strangeEpoch(): WalError {
    const strange = `the key "${this.epoch}" has a value that no davit wrote`;
    const cure = `put the number after the highest N of the keys "${this.log.key}N/" there`;
    return new WalError("damaged", `Reading the log in etcd: ${strange}: ${cure}`);
  }

  piece({ epoch, id }: BatchName, number: number): string {
    return `${this.#prefix}b/${epoch}/${id}/${number}`;
  }

  snapshotPiece(sequence: number, number: number): string {
    return `${this.#prefix}snap/${sequence}/${number}`;
  }

  snapshot(sequence: number): KeyRange {
    return below(`${this.#prefix}snap/${sequence}/`);
  }

  member(id: string): string {
    return `${this.#prefix}members/${id}`;
  }

  /** The id in the key of a member; undefined for any other key. */
  memberId(key: string): string | undefined {
    return key.startsWith(this.members.key) ? key.slice(this.members.key.length) : undefined;
  }

  /** The error of a davit whose log `davit migrate-store` has moved. @param mark the key `moved`. */
  movedTo(mark: EtcdKey): WalError {
    return movedAway(`"${this.all.key}" in etcd`, Buffer.from(mark.value).toString(), `the key "${this.moved}"`);
  }
}

/** What a key holds. @throws {WalError} damaged, for what no davit wrote. */
export function storedIn<Value>(shape: Decoder<Value>, { key, value }: EtcdKey): Value {
  const found = parsed(shape, Buffer.from(value).toString());
  if (found !== undefined) return found;
  throw new WalError("damaged", `Reading the key "${key}" in etcd: it is not what davit writes; restore a backup`);
}

/** The range of all keys that begin with a prefix. */
export function below(prefix: string): KeyRange {
  return { key: prefix, end: prefixEnd(prefix) };
}

/** The end of the range of all keys that begin with an ASCII prefix. */
export function prefixEnd(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

/** The warning about a key that this layout does not have, or about its value. */
export const strangeKeyText = "etcd has a key that no davit wrote, and davit ignores it";
