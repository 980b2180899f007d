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

import type { Clock } from "../../lib/clock.ts";
import { movedAway, movedName, type WalError } from "../core/log-port.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import { type EtcdKey, prefixEnd } from "./client/messages.ts";

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
    this.members = below(`${prefix}members/`);
    this.membership = { key: this.leader, end: prefixEnd(`${prefix}members/`) };
    this.snapshots = below(`${prefix}snap/`);
  }

  batch({ epoch, id }: BatchName): string {
    return `${this.#prefix}l/${epoch}/${id}`;
  }

  /** The name of a batch key; undefined for any other key. */
  batchName(key: string): BatchName | undefined {
    const name = key.slice(this.log.key.length);
    const slash = name.indexOf("/");
    return slash < 0 ? undefined : { epoch: Number(name.slice(0, slash)), id: name.slice(slash + 1) };
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

  /** The batches of an epoch, and the pieces of large ones. */
  epochRanges(epoch: number): readonly KeyRange[] {
    return [below(`${this.#prefix}l/${epoch}/`), below(`${this.#prefix}b/${epoch}/`)];
  }
}

function below(prefix: string): KeyRange {
  return { key: prefix, end: prefixEnd(prefix) };
}

/** The number that a key holds as text; 0 without the key. */
export function numberIn(key: EtcdKey | undefined): number {
  return key === undefined ? 0 : Number(Buffer.from(key.value).toString());
}
