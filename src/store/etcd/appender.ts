/**
 * Appends this member's proposals to the log in etcd.
 *
 * Proposals that wait are put together into a batch, and a transaction writes it under a key of its own, if that key
 * does not exist and the epoch is the one in the key. So a transaction may be repeated: its outcome is the same, and
 * etcd's answer says what it was. While a batch is on its way, the next batch waits and grows. davit sends a full batch
 * immediately, and etcd decides which of the two comes first.
 */

import {
  type EtcdCompare,
  EtcdError,
  type EtcdKey,
  type EtcdTxnAnswer,
} from "../../../packages/etcd-client/src/etcd-client.ts";
import { assert } from "../../lib/errors.ts";
import { nextTurn } from "../../lib/slices.ts";
import { type ProposeOptions, WalError } from "../core/log-port.ts";
import { type BatchFrame, encodeBatch, framedBytes, saveLarge } from "./batches.ts";
import type { Delivery, EtcdProposal, LogPosition, PlacedBatch } from "./delivery.ts";
import { etcdFailure } from "./health.ts";
import type { BatchName, LogPlace } from "./layout.ts";
import type { LeaderClock } from "./leader-clock.ts";
import { followsOn, lastBatchIn, lastBatchKey, oldestEpoch } from "./snapshots.ts";

interface AppenderOptions extends LogPlace {
  readonly leaderClock: LeaderClock;
  /** The run of this process, in every batch id. */
  readonly run: string;
  readonly epoch: number;
  readonly delivery: () => Pick<Delivery, "add" | "position">;
  /** Called when etcd has less of the log than was delivered. */
  readonly wentBack: () => void;
  /** Takes why nothing more may be written: the store was moved, or etcd has what no davit wrote. */
  readonly lost: (error: WalError) => void;
  /** The revision in which this member became leader; undefined while it is not. */
  readonly leaderRevision: () => number | undefined;
  /** Asks for batches that are in the log and did not arrive. */
  readonly look: () => void;
  /** Takes the result of each transaction: an error, or undefined. */
  readonly observe: (error: EtcdError | undefined, seconds: number) => void;
}

/** What the members of a batch have in common: fenced and other records are never mixed. */
type BatchFence = "none" | "leader" | "term";

interface Fenced {
  readonly fence: BatchFence;
  /**
   * The revision of the leader's key when the record was proposed. Another member may have led since then, even if this
   * one leads again. 0 for records without a fence. -1, which no key has, for records of a member that does not lead.
   */
  readonly leaderRevision: number;
  /** When it was proposed, as a monotonic time. */
  readonly sinceMs: number;
}

interface QueuedProposal extends EtcdProposal, Fenced {}

/** Its `sinceMs` is that of its oldest record. */
interface OwnBatch extends Fenced {
  readonly number: number;
  readonly proposals: readonly EtcdProposal[];
}

interface NextBatch extends Pick<PlacedBatch, "name" | "value"> {
  /** How far the log was delivered before the batch was sent. */
  readonly position: LogPosition;
}

const reloadMs = 200;
// etcd takes requests of 1.5 MiB by default.
const maxBatchBytes = 1024 * 1024;
const maxInFlight = 2;
const collectEveryMs = 1;
// A client on a busy computer may not have read its answer after one of these times.
const quietEnough = 2;

export class Appender {
  readonly #options: AppenderOptions;
  #queue: QueuedProposal[] = [];
  #queuedBytes = 0;
  /** By their ids, until they are delivered or given up. */
  readonly #own = new Map<string, OwnBatch>();
  #epoch: number;
  #number = 0;
  #inFlight = 0;
  /** The next batch begins as soon as this many proposals wait; 0 if any number is enough. */
  #expected = 0;
  #drained: PromiseWithResolvers<void> | undefined;
  #stopped: WalError | undefined;

  constructor(options: AppenderOptions) {
    this.#options = options;
    this.#epoch = options.epoch;
  }

  /** Bytes that wait for their turn. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** @throws {WalError} see `LogPort.propose`. */
  propose(bytes: Uint8Array, { fenced = false, beginsTerm = false }: ProposeOptions = {}): Promise<number> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    const fence = beginsTerm ? "term" : fenced ? "leader" : "none";
    const leaderRevision = fence === "none" ? 0 : (this.#options.leaderRevision() ?? -1);
    const sinceMs = this.#options.clock.monotonicMs();
    return new Promise((resolve, reject) => {
      this.#queue.push({ bytes, fence, leaderRevision, sinceMs, resolve, reject });
      this.#queuedBytes += bytes.length;
      this.#pump();
    });
  }

  /** The proposals of a batch that this process wrote; they are delivered with the call. */
  take(id: string): readonly EtcdProposal[] | undefined {
    const batch = this.#own.get(id);
    this.#own.delete(id);
    return batch?.proposals;
  }

  /** True for a batch of this process that was neither delivered nor given up. */
  has(id: string): boolean {
    return this.#own.has(id);
  }

  /** Rejects what was sent and neither delivered nor given up. etcd may have carried it out. */
  rejectSent({ reason, message }: WalError): void {
    const error = new WalError(reason, `${message}; the write may be there`);
    const sent = [...this.#own.values()].flatMap(({ proposals }) => proposals);
    this.#own.clear();
    for (const { reject } of sent) reject(error);
  }

  /** Rejects every proposal, and each later one. */
  end(error: WalError): void {
    this.#stopped = error;
    this.rejectSent(error);
    const waiting = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    for (const { reject } of waiting) reject(error);
  }

  /** Writes no batch into an earlier epoch than this one. */
  skipTo(epoch: number): void {
    this.#epoch = Math.max(this.#epoch, epoch);
  }

  /** Resolves once every proposal is written or given up. Call it after the last one. */
  async drain(): Promise<void> {
    if (this.#isIdle) return;
    this.#drained ??= Promise.withResolvers();
    await this.#drained.promise;
  }

  #pump(): void {
    while (this.#mayBegin) {
      const batch = this.#nextBatch();
      this.#inFlight += 1;
      void this.#writeAndGoOn(batch);
    }
  }

  get #mayBegin(): boolean {
    if (this.#inFlight === 0) return this.#queue.length > 0 && this.#queue.length >= this.#expected;
    return this.#inFlight < maxInFlight && this.#queuedBytes >= maxBatchBytes;
  }

  async #writeAndGoOn(batch: OwnBatch): Promise<void> {
    const { clock } = this.#options;
    const startMs = clock.monotonicMs();
    try {
      await this.#write(batch);
    } finally {
      this.#inFlight -= 1;
      if (batch.proposals.length > 1) await this.#collect(batch.proposals.length, clock.monotonicMs() - startMs);
      this.#pump();
      if (this.#isIdle) this.#drained?.resolve();
    }
  }

  get #isIdle(): boolean {
    return this.#inFlight === 0 && this.#queue.length === 0;
  }

  /**
   * Delays the next batch until the clients that the last batch answered have written again, as they often do at once.
   * Without this, clients would split into two groups that wait for each other. The delay ends when no new record
   * comes, at the latest after the time that the last batch took. It begins when the answers are sent.
   */
  async #collect(answered: number, limitMs: number): Promise<void> {
    const { clock } = this.#options;
    const last = this.#number;
    this.#expected = answered + this.#queue.length;
    await nextTurn();
    const endsAtMs = clock.monotonicMs() + limitMs;
    let quiet = 0;
    while (quiet < quietEnough && this.#number === last && clock.monotonicMs() < endsAtMs) {
      const found = this.#queue.length;
      await clock.sleep(collectEveryMs);
      // Node reads sockets after timers.
      await nextTurn();
      quiet = this.#queue.length > found ? 0 : quiet + 1;
    }
    if (this.#number === last) this.#expected = 0;
  }

  #nextBatch(): OwnBatch {
    const [oldest] = this.#queue;
    assert(oldest !== undefined, "A batch has a record");
    const { fence, leaderRevision, sinceMs } = oldest;
    let count = 0;
    let bytes = 0;
    for (const proposal of this.#queue) {
      bytes += framedBytes(proposal.bytes.length);
      const isFull = bytes > maxBatchBytes || (fence === "term" && count === 1);
      const isAlike = proposal.fence === fence && proposal.leaderRevision === leaderRevision;
      if (!isAlike || (isFull && count > 0)) break;
      count += 1;
    }
    const proposals = this.#queue.splice(0, count);
    for (const { bytes: taken } of proposals) this.#queuedBytes -= taken.length;
    this.#number += 1;
    this.#expected = 0;
    const batch = { number: this.#number, fence, leaderRevision, sinceMs, proposals };
    this.#own.set(this.#idOf(batch), batch);
    return batch;
  }

  #idOf({ number }: OwnBatch): string {
    return `${this.#options.run}/${number}`;
  }

  async #write(batch: OwnBatch): Promise<void> {
    const { clock, observe } = this.#options;
    const startMs = clock.monotonicMs();
    try {
      await this.#writeInSomeEpoch(batch);
      observe(undefined, (clock.monotonicMs() - startMs) / 1_000);
    } catch (error) {
      if (error instanceof EtcdError) observe(error, 0);
      else if (!(error instanceof WalError)) throw error;
      this.#giveUp(batch, error instanceof EtcdError ? etcdFailure("Writing the log", error) : error);
    }
  }

  #giveUp(batch: OwnBatch, error: WalError): void {
    // Not when the watch has delivered it meanwhile.
    if (!this.#own.delete(this.#idOf(batch))) return;
    for (const { reject } of batch.proposals) reject(error);
  }

  async #writeInSomeEpoch(batch: OwnBatch): Promise<void> {
    const { delivery, run } = this.#options;
    let isOver = false;
    while (!isOver && this.#own.has(this.#idOf(batch))) {
      // Others' batches show a later epoch before an own one fails.
      this.skipTo(delivery().position.epoch);
      const name = { epoch: this.#epoch, id: `${run}/${batch.number}` };
      const value = await this.#valueOf(batch, name);
      // What arrives after the transaction says nothing about the log that the transaction found.
      const { position } = delivery();
      const answer = await this.#send(batch, { name, value, position });
      if (answer.succeeded) {
        const previous = answer.answers[0]?.keys[0];
        delivery().add({ name, value, place: (previous?.version ?? 0) + 1, revision: answer.header.revision });
        return;
      }
      isOver = await this.#refused(batch, { name, position }, answer);
    }
  }

  /** @returns false if the batch must be sent again. @throws {WalError} */
  async #refused(
    batch: OwnBatch,
    { name, position }: Omit<NextBatch, "value">,
    { answers }: EtcdTxnAnswer,
  ): Promise<boolean> {
    const { look, wentBack, layout } = this.#options;
    const found = new Map(answers.flatMap(({ keys }) => keys).map((key) => [key.key, key]));
    const mark = found.get(layout.moved);
    const last = this.#lastIn(found, position);
    const epoch = layout.epochIn(found.get(layout.epoch));
    if (found.has(layout.batch(name))) look();
    // `wentBack` rejects the proposals.
    else if (last === "gone") wentBack();
    else if (mark !== undefined) this.#lose(batch, layout.movedTo(mark));
    else if (epoch === undefined || epoch < name.epoch) this.#lose(batch, layout.strangeEpoch());
    else {
      if (last === "there") this.#nextEpoch(name, epoch, found);
      else await this.#afterReload(batch);
      return false;
    }
    return true;
  }

  /** Returns whether etcd still has the log up to a position. */
  #lastIn(found: ReadonlyMap<string, EtcdKey>, position: LogPosition): ReturnType<typeof lastBatchIn> {
    const { layout } = this.#options;
    if ((found.get(layout.head)?.version ?? 0) < position.place) return "gone";
    const key = lastBatchKey(layout, position);
    if (key === undefined) return "there";
    return lastBatchIn({ batch: found.get(key), current: found.get(layout.current) }, position);
  }

  /** Waits for the snapshot that this member needs, because batches that it lacks are deleted. @throws {WalError} */
  async #afterReload({ sinceMs }: OwnBatch): Promise<void> {
    const { clock, look, client } = this.#options;
    if (clock.monotonicMs() - sinceMs > client.withinMs) {
      throw new WalError(
        "appendFailed",
        "Writing the log: this member is behind, and reads a snapshot; try again later",
      );
    }
    look();
    await clock.sleep(reloadMs);
  }

  #lose(batch: OwnBatch, error: WalError): void {
    this.#giveUp(batch, error);
    this.#options.lost(error);
  }

  /** @throws {WalError} when the epoch is the present one, and when the batch may have been in one that is deleted. */
  #nextEpoch(name: BatchName, epoch: number, found: ReadonlyMap<string, EtcdKey>): void {
    const { layout } = this.#options;
    if (epoch === name.epoch) throw notLeader(found.get(layout.leader));
    this.skipTo(epoch);
    if (name.epoch < oldestEpoch(found.get(layout.current))) throw outcomeUnknown();
  }

  async #valueOf({ fence, proposals }: OwnBatch, name: BatchName): Promise<Uint8Array> {
    const { leaderClock } = this.#options;
    const records = proposals.map(({ bytes }) => bytes);
    const isTerm = fence === "term";
    const { atMs, term = 0 } = leaderClock.now();
    const clock = isTerm
      ? { atMs: leaderClock.ownMs, term: this.#options.delivery().position.term + 1 }
      : { atMs, term };
    const frame: BatchFrame = { kind: isTerm ? "term" : "records", clock, records };
    const bytes = encodeBatch(frame);
    return bytes.length <= maxBatchBytes + 1_024 ? bytes : await saveLarge(this.#options, name, frame);
  }

  #send(batch: OwnBatch, { name, value, position }: NextBatch): Promise<EtcdTxnAnswer> {
    const { client, clock, layout } = this.#options;
    const { tryMs, withinMs } = client;
    const { fence, leaderRevision, sinceMs } = batch;
    // A batch that waited for its turn has less time left, but enough for one whole try.
    const leftMs = Math.max(Math.min(tryMs, withinMs), withinMs - (clock.monotonicMs() - sinceMs));
    const key = layout.batch(name);
    const when: EtcdCompare[] = [
      { key: layout.epoch, is: "equal", value: String(name.epoch) },
      { key, is: "equal", createRevision: 0 },
      // In an etcd that was restored from a backup, this record would follow others than it was made for.
      { key: layout.head, is: "greater", version: position.place - 1 },
      ...followsOn(layout, position),
      // A davit without a lease does not prevent a move, and may still write.
      { key: layout.moved, is: "equal", createRevision: 0 },
    ];
    if (fence !== "none") when.push({ key: layout.leader, is: "equal", createRevision: leaderRevision });
    const last = lastBatchKey(layout, position);
    const looks = [key, layout.head, layout.epoch, layout.leader, layout.current, layout.moved];
    return client.txn(
      {
        when,
        // etcd refuses two writes of one key in a transaction, not of two keys.
        success: [{ put: { key: layout.head, value: name.id, previous: true } }, { put: { key, value } }],
        failure: [
          ...looks.map((each) => ({ range: { key: each } })),
          ...(last === undefined ? [] : [{ range: { key: last, keysOnly: true } }]),
        ],
      },
      { repeat: true, withinMs: leftMs },
    );
  }
}

/** The batch may have been in an epoch that is deleted. */
function outcomeUnknown(): WalError {
  const text = "Writing the log: it took so long that the outcome is no longer known; the write may be there";
  return new WalError("appendFailed", text);
}

function notLeader(leader: EtcdKey | undefined): WalError {
  const text = leader === undefined ? "no member leads" : "another member leads";
  return new WalError("deposed", `Writing the log: ${text}`);
}
