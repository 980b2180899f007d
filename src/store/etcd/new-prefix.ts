/**
 * A prefix in etcd, below which a log goes on from an image.
 *
 * The pieces of the snapshot are written first. Then one transaction makes the cluster and its snapshot. Before it,
 * davit takes the prefix for an empty one, and the next `begin` deletes the pieces.
 */

import type { Clock } from "../../lib/clock.ts";
import { type NewPlace, type StoreImage, WalError } from "../core/log-port.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import { EtcdError } from "./client/etcd-error.ts";
import { logStart } from "./delivery.ts";
import { etcdFailure } from "./etcd-failure.ts";
import { type HeldLog, holdLog, refuseInUse } from "./hold.ts";
import { Layout } from "./layout.ts";
import { EtcdSnapshots } from "./snapshots.ts";

export interface NewPrefixOptions {
  readonly client: EtcdClient;
  readonly clock: Clock;
  /** Ends with a slash. */
  readonly prefix: string;
  /** Begins the sentences about the prefix, such as "Restoring to". */
  readonly doing: string;
}

export class NewPrefix implements NewPlace {
  readonly #options: NewPrefixOptions;
  readonly #layout: Layout;

  constructor(options: NewPrefixOptions) {
    this.#options = options;
    this.#layout = new Layout(options.prefix);
  }

  async refuseUnlessEmpty(): Promise<void> {
    const { client, clock, prefix, doing } = this.#options;
    await this.#translated(refuseInUse({ client, clock, layout: this.#layout }));
    const found = await this.#translated(this.#foreignKey());
    if (found === undefined) return;
    const advice = `give another --store-etcd-prefix, or delete what is in it: etcdctl del --prefix ${prefix}`;
    throw new WalError("unusable", `${doing} "${prefix}" in etcd: it is not empty, "${found}" is in it; ${advice}`);
  }

  async begin(image: StoreImage): Promise<void> {
    const { client, clock } = this.#options;
    await this.refuseUnlessEmpty();
    const held = await this.#translated(holdLog({ client, clock, layout: this.#layout }));
    try {
      await this.#translated(this.#write(image, held));
    } finally {
      await held.release();
    }
  }

  async #write({ clusterId, sequence, term, atMs, pieces }: StoreImage, { revision }: HeldLog): Promise<void> {
    const { client } = this.#options;
    // A term of its own: until a member leads, records of another one would seem to be of the image's last run.
    const next = term + 1;
    const writer = {
      position: { ...logStart, sequence, term: next },
      leaderRevision: revision,
      clock: { atMs, term: next },
    };
    const snapshots = new EtcdSnapshots({ client, layout: this.#layout, compact: false });
    await snapshots.begin(writer, clusterId, pieces);
  }

  /** A key that is no piece of an unfinished snapshot. */
  async #foreignKey(): Promise<string | undefined> {
    const { all, snapshots, current } = this.#layout;
    const ranges = [{ key: all.key, end: snapshots.key }, { key: snapshots.end, end: all.end }, { key: current }];
    for (const range of ranges) {
      const { keys } = await this.#options.client.range({ ...range, keysOnly: true, limit: 1 });
      if (keys[0] !== undefined) return keys[0].key;
    }
    return undefined;
  }

  async #translated<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work;
    } catch (error) {
      const { doing, prefix } = this.#options;
      throw error instanceof EtcdError ? etcdFailure(`${doing} "${prefix}" in etcd`, error) : error;
    }
  }
}
