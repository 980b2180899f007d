/**
 * Appends this member's proposals to the log in etcd.
 *
 * Proposals that wait are put together into a batch, and a transaction writes it under a key of its own, if that key
 * does not exist and the epoch is the one in the key. So a transaction may be repeated: its outcome is the same, and
 * etcd's answer says what it was. Two batches are on their way at a time; etcd decides which comes first.
 */

import type { Clock } from "../../lib/clock.ts";
import { type ProposeOptions, WalError } from "../core/log-port.ts";
import { type BatchFrame, encodeBatch, framedBytes } from "./batch-frame.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import { EtcdError } from "./client/etcd-error.ts";
import { bytesOf, type EtcdCompare, type EtcdKey, type EtcdTxnAnswer } from "./client/messages.ts";
import type { Delivery, EtcdProposal } from "./delivery.ts";
import { etcdFailure } from "./etcd-failure.ts";
import type { LargeBatches } from "./large-batches.ts";
import type { BatchName, Layout } from "./layout.ts";
import { numberIn } from "./layout.ts";
import type { LeaderClock } from "./leader-clock.ts";
import { oldestEpoch } from "./snapshots.ts";

export interface AppenderOptions {
  readonly client: EtcdClient;
  readonly layout: Layout;
  readonly clock: Clock;
  readonly leaderClock: LeaderClock;
  readonly large: LargeBatches;
  /** The run of this process, in every batch id. */
  readonly run: string;
  readonly epoch: number;
  readonly delivery: () => Pick<Delivery, "add" | "position">;
  /** Called when etcd has less of the log than was delivered. */
  readonly wentBack: () => void;
  /** The revision in which this member became leader; undefined while it is not. */
  readonly leaderRevision: () => number | undefined;
  /** Asks for batches that are in the log and did not arrive. */
  readonly look: () => void;
  /** Takes the result of each transaction: an error, or undefined. */
  readonly observe: (error: EtcdError | undefined, seconds: number) => void;
}

/** What the members of a batch have in common: fenced and other records are never mixed. */
type BatchFence = "none" | "leader" | "term";

interface QueuedProposal extends EtcdProposal {
  readonly fence: BatchFence;
}

interface OwnBatch {
  readonly number: number;
  readonly fence: BatchFence;
  readonly proposals: readonly EtcdProposal[];
}

// etcd takes requests of 1.5 MiB by default.
const maxBatchBytes = 1024 * 1024;
const maxInFlight = 2;

export class Appender {
  readonly #options: AppenderOptions;
  #queue: QueuedProposal[] = [];
  #queuedBytes = 0;
  /** By their ids, until they are delivered or given up. */
  readonly #own = new Map<string, OwnBatch>();
  #epoch: number;
  #number = 0;
  #inFlight = 0;
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
    return new Promise((resolve, reject) => {
      this.#queue.push({ bytes, fence: beginsTerm ? "term" : fenced ? "leader" : "none", resolve, reject });
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

  /** Rejects every proposal that was neither delivered nor given up, and later ones if `forever`. */
  rejectAll(error: WalError, forever: boolean): void {
    if (forever) this.#stopped = error;
    const waiting = [...[...this.#own.values()].flatMap(({ proposals }) => proposals), ...this.#queue];
    this.#own.clear();
    this.#queue = [];
    this.#queuedBytes = 0;
    for (const { reject } of waiting) reject(error);
  }

  /** Writes no batch into an earlier epoch than this one. */
  skipTo(epoch: number): void {
    this.#epoch = Math.max(this.#epoch, epoch);
  }

  /** Resolves once no batch is on its way. Call it after the last proposal. */
  async drain(): Promise<void> {
    if (this.#inFlight === 0) return;
    this.#drained ??= Promise.withResolvers();
    await this.#drained.promise;
  }

  #pump(): void {
    while (this.#inFlight < maxInFlight && this.#queue.length > 0) {
      const batch = this.#nextBatch();
      this.#inFlight += 1;
      void this.#write(batch).finally(() => {
        this.#inFlight -= 1;
        this.#pump();
        if (this.#inFlight === 0) this.#drained?.resolve();
      });
    }
  }

  #nextBatch(): OwnBatch {
    const fence = this.#queue[0]?.fence ?? "none";
    let count = 0;
    let bytes = 0;
    for (const proposal of this.#queue) {
      bytes += framedBytes(proposal.bytes.length);
      const isFull = bytes > maxBatchBytes || (fence === "term" && count === 1);
      if (proposal.fence !== fence || (isFull && count > 0)) break;
      count += 1;
    }
    const proposals = this.#queue.splice(0, count);
    for (const {
      bytes: { length },
    } of proposals)
      this.#queuedBytes -= length;
    this.#number += 1;
    const batch = { number: this.#number, fence, proposals };
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
    const { delivery, look, wentBack, layout, run } = this.#options;
    for (;;) {
      // Others' batches show a later epoch before an own one fails.
      this.skipTo(delivery().position.epoch);
      const name = { epoch: this.#epoch, id: `${run}/${batch.number}` };
      const value = await this.#valueOf(batch, name);
      const answer = await this.#send(batch, name, value);
      if (answer.succeeded) {
        const previous = answer.answers[0]?.keys[0];
        delivery().add({ name, value, place: (previous?.version ?? 0) + 1, revision: answer.header.revision });
        return;
      }
      const found = new Map(answer.answers.flatMap(({ keys }) => keys).map((key) => [key.key, key]));
      if (found.has(layout.batch(name))) return look();
      const isShorter = (found.get(layout.head)?.version ?? 0) < delivery().position.place;
      // It rejects the proposals.
      if (isShorter) return wentBack();
      this.#nextEpoch(name, found);
    }
  }

  /** @throws {WalError} when the epoch is the present one, and when the batch may have been in one that is deleted. */
  #nextEpoch(name: BatchName, found: ReadonlyMap<string, EtcdKey>): void {
    const { layout } = this.#options;
    const epoch = numberIn(found.get(layout.epoch));
    if (epoch === name.epoch) throw notLeader(found.get(layout.leader));
    this.skipTo(epoch);
    if (name.epoch < oldestEpoch(found.get(layout.current))) throw outcomeUnknown();
  }

  async #valueOf({ fence, proposals }: OwnBatch, name: BatchName): Promise<Uint8Array> {
    const { leaderClock, large } = this.#options;
    const records = proposals.map(({ bytes }) => bytes);
    const isTerm = fence === "term";
    const { atMs, term = 0 } = leaderClock.now();
    const clock = isTerm
      ? { atMs: leaderClock.ownMs, term: this.#options.delivery().position.term + 1 }
      : { atMs, term };
    const frame: BatchFrame = { kind: isTerm ? "term" : "records", clock, records };
    const bytes = encodeBatch(frame);
    return bytes.length <= maxBatchBytes + 1_024 ? bytes : await large.save(name, frame);
  }

  #send({ fence }: OwnBatch, name: BatchName, value: Uint8Array): Promise<EtcdTxnAnswer> {
    const { client, layout, leaderRevision, delivery } = this.#options;
    const key = layout.batch(name);
    const { place } = delivery().position;
    const when: EtcdCompare[] = [
      { key: layout.epoch, is: "equal", value: bytesOf(String(name.epoch)) },
      { key, is: "equal", createRevision: 0 },
      // In an etcd that was restored from a backup, this record would follow others than it was made for.
      { key: layout.head, is: "greater", version: place - 1 },
    ];
    if (fence !== "none") when.push({ key: layout.leader, is: "equal", createRevision: leaderRevision() ?? -1 });
    return client.txn(
      {
        when,
        // etcd refuses two writes of one key in a transaction, not of two keys.
        success: [{ put: { key: layout.head, value: bytesOf(name.id), previous: true } }, { put: { key, value } }],
        failure: [key, layout.head, layout.epoch, layout.leader, layout.current].map((each) => ({
          range: { key: each },
        })),
      },
      { repeat: true },
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
