/**
 * Snapshots of the state in etcd. The leader writes one in pieces, and then one transaction makes it valid and begins
 * the next epoch. The last two are kept, with the epochs after the older one; everything before it is deleted.
 */

import { createHash } from "node:crypto";
import type { EtcdClient, EtcdCompare, EtcdKey, EtcdTxn } from "../../../packages/etcd-client/src/etcd-client.ts";
import type { Clock } from "../../lib/clock.ts";
import { type Decoder, number, object, optional, text } from "../../lib/shape.ts";
import { type Snapshot, WalError } from "../core/log-port.ts";
import type { LeaderTime } from "./batches.ts";
import type { LogPosition } from "./delivery.ts";
import { below, type KeyRange, type Layout, type LogPlace, prefixEnd, storedIn } from "./layout.ts";

/** The value of `snap/current`. */
interface CurrentSnapshot {
  /** The last record in it, and its place. */
  readonly position: LogPosition;
  readonly pieces: number;
  readonly sha256: string;
  /** What the snapshot before still needs; undefined for the first one. */
  readonly previous?: OlderSnapshot | undefined;
  /** Of the moment when it was saved. */
  readonly clock: LeaderTime;
}

type OlderSnapshot = Pick<LogPosition, "sequence" | "epoch" | "revision">;

const older = { sequence: number, epoch: number, revision: number };
const currentShape: Decoder<CurrentSnapshot> = object({
  position: object({ ...older, id: optional(text), place: number, records: number, term: number }),
  pieces: number,
  sha256: text,
  previous: optional(object(older)),
  clock: object({ atMs: number, term: number }),
});

function currentIn(key: EtcdKey): CurrentSnapshot {
  return storedIn(currentShape, key);
}

export interface EtcdSnapshot extends Snapshot {
  readonly position: LogPosition;
  /** No batch after it may be there, to show the leader's clock. */
  readonly clock: LeaderTime;
}

/** Who writes a snapshot, and after which batch. */
interface SnapshotWriter {
  readonly position: LogPosition;
  /** The revision in which this member became leader. */
  readonly leaderRevision: number;
  readonly clock: LeaderTime;
}

interface EtcdSnapshotsOptions extends Pick<LogPlace, "client" | "layout"> {
  /** Also makes etcd drop the revisions before the older snapshot. */
  readonly compact: boolean;
  /** With it, davit rests after each piece that it writes. */
  readonly clock?: Clock;
}

// Small enough that a write of a client beside it waits some milliseconds at most.
const pieceBytes = 64 * 1024;
// etcd commits its database ten times a second, and answers nobody meanwhile. Rests keep each commit small.
const restsPerWork = 3;
const longestRestMs = 25;
// Reads at a time. One by one they are slow, because etcd confirms each read with its members.
const piecesAhead = 8;
// A batch has up to 1 MiB.
const keysPerDeletion = 100;

export class EtcdSnapshots {
  readonly #options: EtcdSnapshotsOptions;

  constructor(options: EtcdSnapshotsOptions) {
    this.#options = options;
  }

  /** The valid snapshot; undefined before the first one. @throws {EtcdError}; {WalError} damaged. */
  async load(): Promise<EtcdSnapshot | undefined> {
    const current = await this.#current();
    if (current === undefined) return undefined;
    const { position, clock } = current;
    return { sequence: position.sequence, position, clock, pieces: this.#pieces(current) };
  }

  /**
   * Writes a snapshot and makes it valid. What only older ones need is deleted.
   * @throws {EtcdError}; {WalError} deposed when another member leads.
   */
  async save(writer: SnapshotWriter, pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void> {
    const { position, leaderRevision, clock } = writer;
    const former = await this.#current();
    await this.#deleteOthers(former, leaderRevision);
    const { count, sha256 } = await this.#write(writer, pieces);
    const previous =
      former === undefined
        ? undefined
        : { sequence: former.position.sequence, epoch: former.position.epoch, revision: former.position.revision };
    await this.#publish({ position, pieces: count, sha256, previous, clock }, leaderRevision);
    if (previous !== undefined) await this.#clean(previous);
  }

  /**
   * Begins a log with a snapshot that another log had. It is valid from the last transaction on; before it, there is no
   * log.
   * @throws {EtcdError}; {WalError} deposed when the log was begun meanwhile, or the key of the leader ended.
   */
  async begin(writer: SnapshotWriter, clusterId: string, pieces: AsyncIterable<Uint8Array>): Promise<void> {
    const { client, layout } = this.#options;
    const { position, leaderRevision, clock } = writer;
    await this.#deleteOthers(undefined, leaderRevision);
    const { count, sha256 } = await this.#write(writer, pieces);
    const current: CurrentSnapshot = { position, pieces: count, sha256, previous: undefined, clock };
    const answer = await client.txn(
      {
        when: [
          { key: layout.leader, is: "equal", createRevision: leaderRevision },
          { key: layout.meta, is: "equal", createRevision: 0 },
          { key: layout.head, is: "equal", createRevision: 0 },
        ],
        success: [
          { put: { key: layout.meta, value: JSON.stringify({ cluster: clusterId }) } },
          { put: { key: layout.epoch, value: String(position.epoch) } },
          { put: { key: layout.current, value: JSON.stringify(current) } },
        ],
        failure: [{ range: { key: layout.current } }],
      },
      { repeat: true },
    );
    if (!answer.succeeded && !isCurrent(answer.answers[0]?.keys[0], current)) throw deposed();
  }

  async #current(): Promise<CurrentSnapshot | undefined> {
    const { client, layout } = this.#options;
    const [key] = (await client.range({ key: layout.current })).keys;
    return key === undefined ? undefined : currentIn(key);
  }

  async *#pieces({ position: { sequence }, pieces, sha256 }: CurrentSnapshot): AsyncGenerator<Uint8Array> {
    const { client, layout } = this.#options;
    const hash = createHash("sha256");
    const ahead: ReturnType<EtcdClient["range"]>[] = [];
    for (let number = 0; number < pieces + piecesAhead; number++) {
      if (number < pieces) ahead.push(client.range({ key: layout.snapshotPiece(sequence, number) }));
      // An error is thrown when its piece is due, or nobody needs the piece any more.
      ahead.at(-1)?.catch(() => undefined);
      if (number < piecesAhead) continue;
      const [key] = (await ahead.shift())?.keys ?? [];
      if (key === undefined) throw incomplete();
      hash.update(key.value);
      yield key.value;
    }
    if (hash.digest("hex") !== sha256) throw incomplete();
  }

  /** Deletes snapshots that are not needed any more, and what unfinished ones left. */
  async #deleteOthers(current: CurrentSnapshot | undefined, leaderRevision: number): Promise<void> {
    const { layout } = this.#options;
    const kept = new Set([current?.position.sequence, current?.previous?.sequence]);
    for (const sequence of await this.#numbersIn(layout.snapshots)) {
      if (!kept.has(sequence)) await this.#asLeader(leaderRevision, { delete: layout.snapshot(sequence) });
    }
  }

  /**
   * The numbers of all snapshots, or of all epochs, as the first part of their keys. Even for keys only, etcd reads the
   * values, so davit asks for one key of each. It does not count up to the highest number, which may be anything.
   */
  async #numbersIn({ key: start, end }: KeyRange): Promise<readonly number[]> {
    const { client } = this.#options;
    const found: number[] = [];
    let from = start;
    for (;;) {
      const [first] = (await client.range({ key: from, end, keysOnly: true, limit: 1 })).keys;
      if (first === undefined) return found;
      const [name = ""] = first.key.slice(start.length).split("/");
      if (/^(0|[1-9]\d{0,14})$/.test(name)) found.push(Number(name));
      const next = prefixEnd(`${start}${name}/`);
      // A key that is no UTF-8 leads back to itself.
      if (next === from) return found;
      from = next;
    }
  }

  async #write(
    { position: { sequence }, leaderRevision }: SnapshotWriter,
    pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  ): Promise<{ readonly count: number; readonly sha256: string }> {
    const { layout, clock } = this.#options;
    const hash = createHash("sha256");
    let count = 0;
    for await (const value of sized(pieces)) {
      hash.update(value);
      const startMs = clock?.monotonicMs() ?? 0;
      await this.#asLeader(leaderRevision, { put: { key: layout.snapshotPiece(sequence, count), value } });
      count += 1;
      const workMs = (clock?.monotonicMs() ?? 0) - startMs;
      await clock?.sleep(Math.min(workMs * restsPerWork, longestRestMs));
    }
    return { count, sha256: hash.digest("hex") };
  }

  /** Or a former leader would change what the present one writes. @throws {EtcdError}; {WalError} deposed. */
  async #asLeader(leaderRevision: number, operation: EtcdTxn["success"][number]): Promise<void> {
    const { client, layout } = this.#options;
    const when = [{ key: layout.leader, is: "equal", createRevision: leaderRevision } as const];
    const { succeeded } = await client.txn({ when, success: [operation] }, { repeat: true });
    if (!succeeded) throw deposed();
  }

  /** Begins the next epoch, too. Batches of the present one that are not in etcd yet are written into the next. */
  async #publish(current: CurrentSnapshot, leaderRevision: number): Promise<void> {
    const { client, layout } = this.#options;
    const present = layout.epochIn((await client.range({ key: layout.epoch })).keys[0]);
    if (present === undefined) throw layout.strangeEpoch();
    const answer = await client.txn(
      {
        when: [
          { key: layout.leader, is: "equal", createRevision: leaderRevision },
          { key: layout.epoch, is: "equal", value: String(present) },
          // Not in an etcd that was restored from a backup, whose log has not come so far.
          { key: layout.head, is: "greater", version: current.position.place - 1 },
        ],
        success: [
          { put: { key: layout.current, value: JSON.stringify(current) } },
          { put: { key: layout.epoch, value: String(present + 1) } },
        ],
        failure: [{ range: { key: layout.current } }],
      },
      { repeat: true },
    );
    if (!answer.succeeded && !isCurrent(answer.answers[0]?.keys[0], current)) throw deposed();
  }

  /** Deletes what is older than the snapshot before the valid one. */
  async #clean({ epoch: keptEpoch, revision }: OlderSnapshot): Promise<void> {
    const { client, layout, compact } = this.#options;
    for (const range of [layout.log, layout.pieces]) {
      for (const epoch of await this.#numbersIn(range)) {
        if (epoch < keptEpoch) await this.#deleteAll(below(`${range.key}${epoch}/`));
      }
    }
    if (compact && revision > 1) await client.compact(revision - 1);
  }

  /** Deletes page by page, because etcd reads the values of the keys, and does nothing else while it deletes. */
  async #deleteAll({ key, end }: KeyRange): Promise<void> {
    const { client } = this.#options;
    for (;;) {
      const { keys, more } = await client.range({ key, end, keysOnly: true, limit: keysPerDeletion });
      const last = keys.at(-1);
      if (last === undefined) return;
      await client.deleteRange({ key, end: `${last.key}\0` });
      if (!more) return;
    }
  }
}

// The last batch that this member delivered proves that the log in etcd is the one that it knows. An etcd that was
// restored from a backup may have a longer log by now, at later revisions. But it does not have this batch: its id is
// random, and no other history has the same id at the same revision.

/** Returns the key of the last batch; undefined before the first one. */
export function lastBatchKey(layout: Layout, { epoch, id }: LogPosition): string | undefined {
  return id === undefined ? undefined : layout.batch({ epoch, id });
}

/** The conditions that hold while the log in etcd continues from this position. */
export function followsOn(layout: Layout, position: LogPosition): readonly EtcdCompare[] {
  const key = lastBatchKey(layout, position);
  return key === undefined ? [] : [{ key, is: "equal", createRevision: position.revision }];
}

/**
 * `deleted`: with its epoch, so a snapshot has it. `gone`: etcd was restored or emptied.
 * @param batch the key of the last batch. @param current the key `snap/current`.
 */
export function lastBatchIn(
  { batch, current }: { readonly batch: EtcdKey | undefined; readonly current: EtcdKey | undefined },
  { epoch, revision }: LogPosition,
): "there" | "deleted" | "gone" {
  if (batch !== undefined) return batch.createRevision === revision ? "there" : "gone";
  return epoch < oldestEpoch(current) ? "deleted" : "gone";
}

/** The first epoch whose batches are certainly kept. @param current the key `snap/current`. */
export function oldestEpoch(current: EtcdKey | undefined): number {
  return current === undefined ? 0 : (currentIn(current).previous?.epoch ?? 0);
}

/** True if a first try, which got no answer, made the snapshot valid. */
function isCurrent(found: EtcdKey | undefined, { sha256 }: CurrentSnapshot): boolean {
  return found !== undefined && currentIn(found).sha256 === sha256;
}

/** The same bytes in pieces of `pieceBytes`. */
async function* sized(pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let begun: Uint8Array[] = [];
  let size = 0;
  for await (const piece of pieces) {
    begun.push(piece);
    size += piece.length;
    if (size < pieceBytes) continue;
    const whole = Buffer.concat(begun);
    let at = 0;
    for (; at + pieceBytes <= whole.length; at += pieceBytes) yield whole.subarray(at, at + pieceBytes);
    begun = [whole.subarray(at)];
    size = whole.length - at;
  }
  if (size > 0) yield Buffer.concat(begun);
}

function deposed(): WalError {
  return new WalError("deposed", "Saving a snapshot: another member leads");
}

function incomplete(): WalError {
  return new WalError("damaged", "Reading a snapshot in etcd: pieces of it are missing or changed; restore a backup");
}
