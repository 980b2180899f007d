/**
 * Delivers batches in the order of their places. They may arrive in any order and more than once: as the answer to this
 * member's own transaction, from the watch, and from a repair. A batch waits until every earlier one was delivered.
 */

import { EtcdError } from "../../../packages/etcd-client/src/etcd-client.ts";
import { assert } from "../../lib/errors.ts";
import { type CommittedListener, type LogCounts, WalError } from "../core/log-port.ts";
import { type BatchFrame, decodeBatch, type LeaderTime } from "./batches.ts";
import type { BatchName } from "./layout.ts";

/** How far the log was delivered. */
export interface LogPosition {
  /** Of the last delivered record: the count of all records so far. */
  readonly sequence: number;
  /** Place of the batch with that record. */
  readonly place: number;
  /** How many records of that batch were delivered. */
  readonly records: number;
  /** The revision of that batch in etcd. */
  readonly revision: number;
  readonly epoch: number;
  /** The id of that batch; undefined before the first batch, and in a snapshot of an older davit. */
  readonly id?: string;
  /** How many terms have begun. */
  readonly term: number;
}

/** The position before the first record. */
export const logStart: LogPosition = { sequence: 0, place: 0, records: 0, revision: 0, epoch: 0, term: 0 };

export interface PlacedBatch {
  readonly name: BatchName;
  readonly place: number;
  readonly revision: number;
  readonly value: Uint8Array;
}

/** A record that this process proposed, and its proposer. */
export interface EtcdProposal {
  readonly bytes: Uint8Array;
  readonly resolve: (sequence: number) => void;
  readonly reject: (error: WalError) => void;
}

/** The batches that this process wrote. Their records need not be decoded. */
interface OwnBatches {
  has(id: string): boolean;
  /** The proposals of a batch; undefined for others' batches. They are delivered with this call. */
  take(id: string): readonly EtcdProposal[] | undefined;
}

interface DeliveryOptions {
  /** Where delivery goes on. Of a batch that was delivered in part, the rest follows. */
  readonly from: LogPosition;
  readonly listener: CommittedListener;
  readonly own: OwnBatches;
  /** Called before a batch is delivered. */
  readonly clockRead: (reading: LeaderTime) => void;
  /** Called after a record that begins a term. @param id of its batch. */
  readonly termBegan: (term: number, id: string) => void;
  /** The frame of a large batch. @throws {EtcdError | WalError} */
  readonly fetch: (name: BatchName, frame: BatchFrame) => Promise<BatchFrame>;
  /** Called when the next batch cannot be fetched now: add it again. It may be deleted meanwhile. */
  readonly stalled: () => void;
  /** Called for a batch whose place another batch had: etcd was restored from a backup. */
  readonly wentBack: () => void;
  /** Takes the error after which nothing more is delivered. */
  readonly failed: (error: unknown) => void;
}

type BatchCounts = Pick<LogCounts, "sentBatches" | "receivedBatches">;

export const noBatches: BatchCounts = { sentBatches: 0, receivedBatches: 0 };

interface Waiter {
  readonly place: number;
  readonly resolve: () => void;
  readonly reject: (error: WalError) => void;
}

export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #waiting = new Map<number, PlacedBatch>();
  #position: LogPosition;
  /** Records of the next batch that were delivered before: it is one that a snapshot has in part. */
  #skipped: number;
  #isFetching = false;
  #isHeld = false;
  /** The batch whose pieces were missing. */
  #incomplete: number | undefined;
  #stopped: WalError | undefined;
  #waiters: readonly Waiter[] = [];
  #counts = noBatches;

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#position = options.from;
    this.#skipped = options.from.records;
  }

  get position(): LogPosition {
    return this.#position;
  }

  /** How many batches this member and others wrote, since `countFromHere`. */
  get counts(): BatchCounts {
    return this.#counts;
  }

  /** The batches so far were in the log at the start. */
  countFromHere(): void {
    this.#counts = noBatches;
  }

  /** The place from which batches are wanted. A batch that was delivered in part is wanted again at the start. */
  get nextPlace(): number {
    return this.#skipped > 0 ? this.#position.place : this.#position.place + 1;
  }

  /** True while a later batch waits for an earlier one. */
  get isGap(): boolean {
    return !this.#isFetching && this.#waiting.size > 0;
  }

  add(batch: PlacedBatch): void {
    if (this.#stopped !== undefined) return;
    const { place, revision } = this.#position;
    if (batch.place <= place !== batch.revision <= revision) this.#options.wentBack();
    if (batch.place < this.nextPlace || this.#stopped !== undefined) return;
    this.#waiting.set(batch.place, batch);
    this.#deliver();
  }

  /** Delivers nothing until `goOn`. */
  hold(): void {
    this.#isHeld = true;
  }

  /** Ends `hold`. @param from where delivery goes on: where it was, or behind a snapshot. */
  goOn(from: LogPosition): void {
    if (from !== this.#position) this.#skipped = from.records;
    this.#position = from;
    this.#isHeld = false;
    for (const place of this.#waiting.keys()) if (place < this.nextPlace) this.#waiting.delete(place);
    this.#deliver();
  }

  /**
   * Resolves once the batch of a place was delivered.
   * @throws {WalError} when nothing more is delivered; readOnly when `limit` aborts first.
   */
  reached(place: number, limit?: AbortSignal): Promise<void> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    if (place < this.nextPlace) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const waiter = { place, resolve, reject };
      this.#waiters = [...this.#waiters, waiter];
      limit?.addEventListener("abort", () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        reject(new WalError("readOnly", "Reading the log in etcd: its end did not arrive in time; try again later"));
      });
    });
  }

  /** Delivers nothing more. */
  stop(error: WalError): void {
    this.#stopped ??= error;
    this.#waiting.clear();
    for (const { reject } of this.#waiters) reject(error);
    this.#waiters = [];
  }

  #deliver(): void {
    try {
      let next = this.#waiting.get(this.nextPlace);
      while (next !== undefined && this.#mayDeliver) {
        const frame = decodeBatch(next.value);
        if (frame.kind === "large" && !this.#options.own.has(next.name.id)) void this.#fetch(next, frame);
        else this.#take(next, frame);
        next = this.#waiting.get(this.nextPlace);
      }
    } catch (error) {
      if (!(error instanceof WalError)) throw error;
      this.#options.failed(error);
    }
    this.#wake();
  }

  async #fetch(batch: PlacedBatch, frame: BatchFrame): Promise<void> {
    this.#isFetching = true;
    try {
      const whole = await this.#options.fetch(batch.name, frame);
      this.#isFetching = false;
      if (this.#mayDeliver && batch.place === this.nextPlace) this.#take(batch, whole);
      this.#deliver();
    } catch (error) {
      this.#isFetching = false;
      this.#fetchFailed(batch, error);
    }
  }

  #fetchFailed({ place }: PlacedBatch, error: unknown): void {
    if (this.#stopped !== undefined || place !== this.nextPlace) return;
    const isMissing = error instanceof WalError;
    // Its pieces are deleted after the batch itself, by a snapshot: then there is no second time.
    if (!(isMissing || error instanceof EtcdError)) throw error;
    if (isMissing && this.#incomplete === place) {
      this.#options.failed(error);
      return;
    }
    if (isMissing) this.#incomplete = place;
    this.#waiting.delete(place);
    this.#options.stalled();
  }

  get #mayDeliver(): boolean {
    return !this.#isFetching && !this.#isHeld && this.#stopped === undefined;
  }

  #take(batch: PlacedBatch, { kind, clock, records: decoded }: BatchFrame): void {
    const { listener, own, clockRead, termBegan } = this.#options;
    const { name, place, revision } = batch;
    this.#waiting.delete(place);
    clockRead(clock);
    const proposals = own.take(name.id);
    const { sentBatches, receivedBatches } = this.#counts;
    const sent = proposals === undefined ? 0 : 1;
    this.#counts = { sentBatches: sentBatches + sent, receivedBatches: receivedBatches + 1 - sent };
    const records = proposals?.map(({ bytes }) => bytes) ?? decoded;
    assert(this.#skipped <= records.length, "A snapshot has no more of a batch than there is");
    const skipped = this.#skipped;
    this.#skipped = 0;
    this.#position = { ...this.#position, place, revision, ...name, records: skipped };
    for (const [number, bytes] of records.entries()) {
      if (number < skipped) continue;
      const term = this.#position.term + (kind === "term" ? 1 : 0);
      const sequence = this.#position.sequence + 1;
      this.#position = { ...this.#position, sequence, term, records: number + 1 };
      listener(sequence, bytes, term);
      if (kind === "term") termBegan(term, name.id);
      proposals?.[number]?.resolve(sequence);
    }
  }

  #wake(): void {
    if (this.#waiters.length === 0) return;
    const isReached = ({ place }: Waiter) => place < this.nextPlace;
    for (const waiter of this.#waiters) if (isReached(waiter)) waiter.resolve();
    this.#waiters = this.#waiters.filter((waiter) => !isReached(waiter));
  }
}
