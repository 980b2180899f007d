/**
 * Follows the log in etcd: every batch that any member writes, in time.
 *
 * Batches come from a watch. A watch may lose events, and may be late without a sign: the places of the batches show a
 * gap, and a look at the head every two seconds shows a missing end. Then the batches are read.
 */

import { EtcdError, type EtcdKey, type EtcdWatchPart } from "../../../packages/etcd-client/src/etcd-client.ts";
import { Deadline } from "../../lib/deadline.ts";
import type { Log } from "../../lib/log.ts";
import { WalError } from "../core/log-port.ts";
import type { Delivery, LogPosition, PlacedBatch } from "./delivery.ts";
import { etcdFailure } from "./health.ts";
import { type BatchName, type LogPlace, strangeKeyText } from "./layout.ts";
import { lastBatchIn, lastBatchKey } from "./snapshots.ts";

interface TailOptions extends LogPlace {
  /** Gets a warning about each key that is no key of the log. Default: nobody. */
  readonly log?: Log;
  readonly delivery: () => Delivery;
  /** Called when batches that were not delivered are deleted. Resolves once delivery goes on from a snapshot. */
  readonly leftBehind: () => Promise<void>;
  /** Called when etcd has less of the log than was delivered: it was restored from a backup, or emptied. */
  readonly wentBack: () => void;
  /** Called when the store was moved to another place. */
  readonly moved: (error: WalError) => void;
}

const lookEveryMs = 2_000;
// The watch is given this time to bring what a look has found.
const graceMs = 100;
const retryMs = 200;
// An answer of etcd with this much takes about 10 ms.
const pageBytes = 4 * 1024 * 1024;
const minPageKeys = 8;
const maxPageKeys = 4_000;

/** What a watch reported of one revision. */
interface PartialBatch {
  readonly place?: number;
  readonly batch?: { readonly name: BatchName; readonly value: Uint8Array };
}

export class Tail {
  readonly #options: TailOptions;
  readonly #stopping = new AbortController();
  /** Of revisions whose head or whose batch has not come yet. */
  readonly #partial = new Map<number, PartialBatch>();
  #poked = new AbortController();
  /** The look that waits for its turn; whoever needs one joins it. */
  #nextLook: Promise<number> | undefined;
  #look: Promise<unknown> = Promise.resolve();
  #catchingUp: Promise<void> | undefined;
  #completeAtMs: number;
  /** The first look whose batch is not delivered yet, with the time at which the look began. */
  #pending: { readonly place: number; readonly atMs: number } | undefined;
  /** A revision at which the log had no batch; 0 if it never was empty. */
  #emptyAt = 0;
  #running: readonly Promise<void>[] = [];

  constructor(options: TailOptions) {
    this.#options = options;
    this.#completeAtMs = options.clock.monotonicMs();
  }

  /** The last known monotonic time at which everything in the log was delivered; at first the time of construction. */
  get completeAtMs(): number {
    if (this.#pending !== undefined && this.#pending.place < this.#options.delivery().nextPlace) {
      this.#completeAtMs = this.#pending.atMs;
      this.#pending = undefined;
    }
    return this.#completeAtMs;
  }

  /** Begins to follow. Call it after `catchUp`. */
  start(): void {
    this.#running = [this.#watchAll(), this.#lookRegularly()];
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running);
  }

  /** Looks soon whether batches are missing. */
  poke(): void {
    this.#poked.abort();
  }

  /**
   * Resolves once everything that was in the log at the call is delivered.
   * @throws {WalError} when the log is lost, or after the client's `withinMs`.
   */
  async barrier(): Promise<void> {
    const { clock, client, delivery } = this.#options;
    const endsAtMs = clock.monotonicMs() + client.withinMs;
    try {
      const place = await this.#head();
      if (place < delivery().nextPlace) await delivery().reached(place);
      else await this.#delivered(place, endsAtMs);
    } catch (error) {
      throw error instanceof EtcdError ? etcdFailure("Reading the end of the log", error) : error;
    }
  }

  /** A barrier that takes its time while batches arrive. @throws {WalError} */
  async settled(): Promise<void> {
    for (;;) {
      const { position } = this.#options.delivery();
      try {
        return await this.barrier();
      } catch (error) {
        if (this.#options.delivery().position === position) throw error;
      }
    }
  }

  async #delivered(place: number, endsAtMs: number): Promise<void> {
    const { clock, delivery } = this.#options;
    const limit = new Deadline({ clock, durationMs: Math.max(1, endsAtMs - clock.monotonicMs()) });
    this.poke();
    try {
      await delivery().reached(place, limit.signal);
    } finally {
      limit.cancel();
    }
  }

  /**
   * True if the log certainly continues from what was delivered. Call it after a stream from etcd is open, and before
   * anything of the stream is used: etcd may have been restored from a backup in between. False if the log is lost, or
   * was read anew: then open another stream.
   * @throws {EtcdError}
   */
  async isVerified(): Promise<boolean> {
    const { client, layout, delivery, wentBack } = this.#options;
    const { position } = delivery();
    const key = lastBatchKey(layout, position);
    if (key === undefined) return true;
    const success = [{ range: { key, keysOnly: true } }, { range: { key: layout.current } }];
    const { answers } = await client.txn({ success }, { repeat: true });
    const [batch, current] = answers.map(({ keys }) => keys[0]);
    const last = lastBatchIn({ batch, current }, position);
    if (last === "gone") wentBack();
    // Only a snapshot has it now.
    if (last === "deleted") await this.#catchUpCalmly();
    return last === "there";
  }

  /** Reads everything that was not delivered yet. @throws {EtcdError}; {WalError} */
  async catchUp(): Promise<void> {
    this.#catchingUp ??= this.#catchUp().finally(() => {
      this.#catchingUp = undefined;
    });
    await this.#catchingUp;
  }

  async #catchUp(): Promise<void> {
    const { delivery, leftBehind } = this.#options;
    let from = delivery().nextPlace;
    let batches = await this.#read();
    while (batches === undefined) {
      // The watch may have brought what was not there to be read.
      if (delivery().nextPlace === from) await leftBehind();
      from = delivery().nextPlace;
      batches = await this.#read();
    }
    for (const batch of batches) delivery().add(batch);
  }

  /** The place of the last batch, by a linearizable read. Calls that come before it is sent share it. */
  #head(): Promise<number> {
    const { clock, client } = this.#options;
    const endsAtMs = clock.monotonicMs() + client.withinMs;
    this.#nextLook ??= this.#look.then(async () => {
      // The look before it may have used up its time: each has one more try.
      const look = this.#readHead(Math.max(client.tryMs, endsAtMs - clock.monotonicMs()));
      this.#nextLook = undefined;
      this.#look = look.catch(() => undefined);
      return await look;
    });
    return this.#nextLook;
  }

  async #readHead(withinMs: number): Promise<number> {
    const { client, layout, delivery, clock, moved } = this.#options;
    const before = delivery().position;
    const atMs = clock.monotonicMs();
    const success = [layout.head, layout.moved].map((key) => ({ range: { key } }));
    const { answers } = await client.txn({ success }, { withinMs, repeat: true });
    const [head, mark] = answers.map(({ keys }) => keys[0]);
    if (mark !== undefined) {
      // A davit without a lease does not prevent a move. Its copy may be old by now.
      const error = layout.movedTo(mark);
      moved(error);
      throw error;
    }
    this.#check(head, before);
    const place = head?.version ?? 0;
    // If several looks wait, the first one shows how far this member is behind.
    if (this.completeAtMs < atMs) this.#pending ??= { place, atMs };
    return place;
  }

  /** The head is the last batch that was delivered, or a later one. */
  #check(head: EtcdKey | undefined, before: LogPosition): void {
    const { version = 0, modRevision = 0, value } = head ?? {};
    const isLast = () => modRevision === before.revision && isText(value, before.id);
    const isSame = version === before.place && (version === 0 || isLast());
    if (!isSame && (version <= before.place || modRevision <= before.revision)) this.#options.wentBack();
  }

  async #lookRegularly(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#poked = new AbortController();
      await this.#sleep(lookEveryMs, this.#poked.signal);
      if (signal.aborted) return;
      try {
        await this.#repair();
      } catch (error) {
        if (!isTrouble(error)) throw error;
        await clock.sleep(retryMs, signal);
      }
    }
  }

  /** Reads what is in the log and does not come by the watch. */
  async #repair(): Promise<void> {
    const { clock, delivery } = this.#options;
    const { signal } = this.#stopping;
    const place = await this.#head();
    if (place < delivery().nextPlace) return;
    await clock.sleep(graceMs, signal);
    if (place >= delivery().nextPlace && !signal.aborted) await this.catchUp();
  }

  async #watchAll(): Promise<void> {
    const { client, layout, delivery, clock } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        this.#partial.clear();
        // Before the revision of an empty log, there may be batches of a former log, which a move has deleted.
        const startRevision = (delivery().position.revision || this.#emptyAt) + 1;
        await this.#takeAll(client.watch({ ...layout.log, startRevision, noDeletes: true }, { signal }));
      } catch (error) {
        if (!isTrouble(error)) throw error;
        if (error instanceof EtcdError && error.reason === "compacted") await this.#catchUpCalmly();
        await clock.sleep(retryMs, signal);
      }
    }
  }

  /** Until the watch ends. @throws {EtcdError} */
  async #takeAll(parts: AsyncIterable<EtcdWatchPart>): Promise<void> {
    for await (const part of parts) {
      // The first part has no events.
      if (part.events.length > 0) this.#take(part);
      else if (!(await this.isVerified())) return;
    }
  }

  async #catchUpCalmly(): Promise<void> {
    try {
      await this.catchUp();
    } catch (error) {
      if (!isTrouble(error)) throw error;
    }
  }

  #take({ events, isFragment }: EtcdWatchPart): void {
    for (const { key } of events) this.#takeKey(key);
    const newest = events.at(-1)?.key.modRevision ?? 0;
    // What lacks its other half in a whole answer will not get it any more.
    if (!isFragment)
      for (const revision of this.#partial.keys()) if (revision <= newest) this.#partial.delete(revision);
    if (this.#options.delivery().isGap) this.poke();
  }

  #takeKey({ key, value, version, modRevision }: EtcdKey): void {
    const { layout, delivery } = this.#options;
    const name = layout.batchName(key);
    if (name === undefined && key !== layout.head) return;
    const known = this.#partial.get(modRevision) ?? {};
    const now: PartialBatch = name === undefined ? { ...known, place: version } : { ...known, batch: { name, value } };
    this.#partial.set(modRevision, now);
    if (now.place === undefined || now.batch === undefined) return;
    this.#partial.delete(modRevision);
    delivery().add({ ...now.batch, place: now.place, revision: modRevision });
  }

  /** Every batch that was not delivered, in order; undefined when some are deleted. */
  async #read(): Promise<readonly PlacedBatch[] | undefined> {
    const { delivery, layout } = this.#options;
    const { nextPlace, position } = delivery();
    const { keys, revision: readAt } = await this.#readLog();
    if (keys.length === 0) this.#emptyAt = readAt;
    const head = keys.find(({ key }) => key === layout.head);
    this.#check(head, position);
    const isLast = ({ key, modRevision }: EtcdKey) => key !== layout.head && modRevision === position.revision;
    if (position.place > 0 && !keys.some(isLast)) return undefined;
    const isWanted = nextPlace > position.place ? position.revision + 1 : position.revision;
    const found: Omit<PlacedBatch, "place">[] = [];
    for (const { key, value, modRevision: revision } of keys) {
      const name = layout.batchName(key);
      if (name !== undefined && revision >= isWanted) found.push({ name, value, revision });
    }
    found.sort((a, b) => a.revision - b.revision);
    if (nextPlace - 1 + found.length !== (head?.version ?? 0)) return undefined;
    return found.map((batch, number) => ({ ...batch, place: nextPlace + number }));
  }

  /** All keys of the log at one revision, in pages. */
  async #readLog(): Promise<{ readonly keys: readonly EtcdKey[]; readonly revision: number }> {
    const { client, layout, log } = this.#options;
    const keys: EtcdKey[] = [];
    let bytes = 0;
    let { key } = layout.log;
    let revision: number | undefined;
    let limit = minPageKeys;
    for (;;) {
      const asked = revision === undefined ? {} : { revision };
      const page = await client.range({ key, end: layout.log.end, limit, ...asked });
      revision ??= page.header.revision;
      for (const each of page.keys) {
        if (each.key !== layout.head && layout.batchName(each.key) === undefined) {
          log?.warn({ key: each.key }, strangeKeyText);
          continue;
        }
        keys.push(each);
        bytes += each.value.length;
      }
      const last = page.keys.at(-1);
      if (last === undefined || !page.more) return { keys, revision };
      key = `${last.key}\0`;
      limit = Math.min(maxPageKeys, Math.max(minPageKeys, Math.floor((pageBytes * keys.length) / Math.max(1, bytes))));
    }
  }

  async #sleep(durationMs: number, poked: AbortSignal): Promise<void> {
    const either = AbortSignal.any([poked, this.#stopping.signal]);
    await this.#options.clock.sleep(durationMs, either);
  }
}

/** True if the bytes are this text, or if there is no text. */
function isText(value: Uint8Array | undefined, text: string | undefined): boolean {
  return text === undefined || (value !== undefined && Buffer.from(value).toString() === text);
}

/** True for what may go by itself: etcd does not answer, or the log ends. */
function isTrouble(error: unknown): boolean {
  return error instanceof EtcdError || error instanceof WalError;
}
