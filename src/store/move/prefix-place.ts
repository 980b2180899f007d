/** A prefix in etcd as the place of a whole store, which is moved away, or begins there. */

import { type EtcdClient, EtcdError } from "../../../packages/etcd-client/src/etcd-client.ts";
import type { Clock } from "../../lib/clock.ts";
import { decodeRecord } from "../command/command-codec.ts";
import { WalError } from "../core/log-port.ts";
import { fetchLarge } from "../etcd/batches.ts";
import { readClusterId } from "../etcd/cluster-id.ts";
import { Delivery, type LogPosition, logStart } from "../etcd/delivery.ts";
import { etcdFailure } from "../etcd/health.ts";
import { type KeyRange, Layout, type LogPlace } from "../etcd/layout.ts";
import { type HeldLog, holdLog, refuseInUse, refuseMoved } from "../etcd/lease.ts";
import { EtcdSnapshots } from "../etcd/snapshots.ts";
import { Tail } from "../etcd/tail.ts";
import { StateMachine } from "../snapshot/state-machine.ts";
import type { NewPlace, OldPlace, StoppedStore, StoreImage } from "./places.ts";

export interface PrefixPlaceOptions {
  readonly client: EtcdClient;
  readonly clock: Clock;
  /** Ends with a slash. */
  readonly prefix: string;
  /** Begins the sentences about the prefix, such as "Restoring to". */
  readonly doing: string;
  /** Keys that are removed together with the mark's writing, such as those of another log. */
  readonly removed?: KeyRange;
}

/**
 * For a new store, the pieces of the snapshot are written first. Then one transaction makes the cluster and its
 * snapshot. Before it, davit takes the prefix for an empty one, and the next `begin` deletes the pieces.
 */
export class PrefixPlace implements OldPlace, NewPlace {
  /** Begins a sentence about the place. */
  readonly #doing: string;
  readonly #prefix: string;
  readonly #place: LogPlace;
  readonly #removed: KeyRange | undefined;
  #held: HeldLog | undefined;
  #end: LogPosition | undefined;
  #mark = "";

  constructor({ client, clock, prefix, doing, removed }: PrefixPlaceOptions) {
    this.#doing = `${doing} "${prefix}" in etcd`;
    this.#prefix = prefix;
    this.#place = { client, clock, layout: new Layout(prefix) };
    this.#removed = removed;
  }

  async read(agelessRoot: string): Promise<StoppedStore> {
    return await this.#translated(async () => {
      const clusterId = await readClusterId(this.#place.client, this.#place.layout.meta);
      if (clusterId === undefined) {
        throw new WalError("unusable", `${this.#doing}: no store is below this prefix`);
      }
      await refuseMoved(this.#place);
      this.#held = await holdLog(this.#place);
      const machine = new StateMachine(agelessRoot);
      this.#end = await readLog(this.#place, machine);
      const { sequence, term } = this.#end;
      return { machine, clusterId, sequence, term };
    });
  }

  async mark(to: string): Promise<void> {
    const { client, layout } = this.#place;
    this.#mark = to;
    await this.#translated(async () => {
      const { succeeded } = await client.txn(
        {
          when: [
            { key: layout.leader, is: "equal", createRevision: this.#held?.revision ?? -1 },
            { key: layout.head, is: "equal", version: this.#end?.place ?? 0 },
          ],
          success: [
            { put: { key: layout.moved, value: this.#mark } },
            ...(this.#removed === undefined ? [] : [{ delete: this.#removed }]),
          ],
        },
        { repeat: true },
      );
      if (!succeeded) {
        const what = "something wrote to it, or etcd was away for too long";
        throw new WalError("locked", `${this.#doing}: ${what}; stop every davit, then try again`);
      }
      // A davit that started meanwhile has registered, or reads the mark.
      await refuseInUse(this.#place, true);
    });
  }

  async unmark(): Promise<void> {
    const { client, layout } = this.#place;
    const key = layout.moved;
    // Not that of another run, which has moved the store while this one was away.
    const when = [{ key, is: "equal", value: this.#mark } as const];
    await this.#translated(() => client.txn({ when, success: [{ delete: { key } }] }, { repeat: true }));
  }

  async release(): Promise<void> {
    await this.#held?.release();
  }

  async refuseUnlessEmpty(): Promise<void> {
    const prefix = this.#prefix;
    const found = await this.#translated(async () => {
      await refuseInUse(this.#place);
      return await this.#foreignKey();
    });
    if (found === undefined) return;
    const advice = `give another --store-etcd-prefix, or delete what is in it: etcdctl del --prefix ${prefix}`;
    throw new WalError("unusable", `${this.#doing}: it is not empty, "${found}" is in it; ${advice}`);
  }

  async begin(image: StoreImage): Promise<void> {
    await this.refuseUnlessEmpty();
    await this.#translated(async () => {
      const held = await holdLog(this.#place);
      try {
        await this.#write(image, held);
      } finally {
        await held.release();
      }
    });
  }

  async #write({ clusterId, sequence, term, atMs, pieces }: StoreImage, { revision }: HeldLog): Promise<void> {
    // A term of its own: until a member leads, records of another one would seem to be of the image's last run.
    const next = term + 1;
    const writer = {
      position: { ...logStart, sequence, term: next },
      leaderRevision: revision,
      clock: { atMs, term: next },
    };
    const { client, layout } = this.#place;
    const snapshots = new EtcdSnapshots({ client, layout, compact: false });
    await snapshots.begin(writer, clusterId, pieces);
  }

  /** A key that is no piece of an unfinished snapshot. */
  async #foreignKey(): Promise<string | undefined> {
    const { all, snapshots, current } = this.#place.layout;
    const ranges = [{ key: all.key, end: snapshots.key }, { key: snapshots.end, end: all.end }, { key: current }];
    for (const range of ranges) {
      const { keys } = await this.#place.client.range({ ...range, keysOnly: true, limit: 1 });
      if (keys[0] !== undefined) return keys[0].key;
    }
    return undefined;
  }

  async #translated<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw error instanceof EtcdError ? etcdFailure(this.#doing, error) : error;
    }
  }
}

/**
 * Reads a log that no davit uses, from its newest snapshot to its end. It changes nothing.
 * @returns the end of the log. @throws {EtcdError}; {WalError} when the log cannot be read as a whole.
 */
async function readLog(place: LogPlace, machine: StateMachine): Promise<LogPosition> {
  const snapshot = await new EtcdSnapshots({ ...place, compact: false }).load();
  if (snapshot !== undefined) await machine.restore(snapshot);
  const stop = (error: unknown) => delivery.stop(error instanceof WalError ? error : incomplete(error));
  const changed = () => stop(incomplete(undefined));
  const delivery: Delivery = new Delivery({
    from: snapshot?.position ?? logStart,
    listener: (_sequence, bytes, term) => machine.replay(decodeRecord(bytes), term),
    own: { has: () => false, take: () => undefined },
    clockRead() {},
    termBegan() {},
    fetch: (name, frame) => fetchLarge(place, name, frame),
    stalled: changed,
    wentBack: changed,
    failed: stop,
  });
  const leftBehind = () => Promise.reject(incomplete(undefined));
  const tail = new Tail({
    ...place,
    delivery: () => delivery,
    leftBehind,
    wentBack: changed,
    moved: stop,
  });
  await tail.catchUp();
  await tail.settled();
  return delivery.position;
}

function incomplete(cause: unknown): WalError {
  const what = "a part of it is missing, or something changes it; stop every davit, then try again";
  return new WalError("damaged", `Reading the log in etcd: ${what}`, { cause });
}
