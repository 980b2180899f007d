/** The prefix in etcd of a store that is moved to another place. */

import { decodeRecord } from "../command/command-codec.ts";
import { WalError } from "../core/log-port.ts";
import type { EtcdClient } from "../etcd/client/etcd-client.ts";
import { EtcdError } from "../etcd/client/etcd-error.ts";
import { bytesOf } from "../etcd/client/messages.ts";
import { readClusterId } from "../etcd/cluster-id.ts";
import type { LogPosition } from "../etcd/delivery.ts";
import { etcdFailure } from "../etcd/etcd-failure.ts";
import { type HeldLog, type HoldOptions, holdLog, refuseInUse } from "../etcd/hold.ts";
import { type KeyRange, Layout } from "../etcd/layout.ts";
import { refuseMoved } from "../etcd/moved-mark.ts";
import { readLog } from "../etcd/read-log.ts";
import { StateMachine } from "../snapshot/state-machine.ts";
import type { OldPlace, StoppedStore } from "./move-store.ts";

export interface OldPrefixOptions extends Pick<HoldOptions, "clock"> {
  readonly client: EtcdClient;
  /** Ends with a slash. */
  readonly prefix: string;
  /** Keys that are removed together with the mark's writing, such as those of another log. */
  readonly removed?: KeyRange;
}

export class OldPrefix implements OldPlace {
  readonly #prefix: string;
  readonly #parts: HoldOptions;
  #held: HeldLog | undefined;
  #end: LogPosition | undefined;
  #mark = bytesOf("");
  readonly #removed: KeyRange | undefined;

  constructor({ prefix, removed, ...options }: OldPrefixOptions) {
    this.#prefix = prefix;
    this.#removed = removed;
    this.#parts = { ...options, layout: new Layout(prefix) };
  }

  async read(agelessRoot: string): Promise<StoppedStore> {
    return await this.#translated(async () => {
      const clusterId = await readClusterId(this.#parts.client, this.#parts.layout.meta);
      if (clusterId === undefined) {
        throw new WalError("unusable", `Moving "${this.#prefix}" in etcd: no store is below this prefix`);
      }
      await refuseMoved(this.#parts);
      this.#held = await holdLog(this.#parts);
      const machine = new StateMachine(agelessRoot);
      this.#end = await readLog(this.#parts, {
        restore: (snapshot) => machine.restore(snapshot),
        committed: (_sequence, bytes, term) => machine.replay(decodeRecord(bytes), term),
      });
      const { sequence, term } = this.#end;
      return { machine, clusterId, sequence, term };
    });
  }

  async mark(to: string): Promise<void> {
    const { client, layout } = this.#parts;
    this.#mark = bytesOf(to);
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
        throw new WalError("locked", `Moving "${this.#prefix}" in etcd: ${what}; stop every davit, then try again`);
      }
      // A davit that started meanwhile has registered, or reads the mark.
      await refuseInUse(this.#parts, true);
    });
  }

  async unmark(): Promise<void> {
    const { client, layout } = this.#parts;
    const key = layout.moved;
    // Not that of another run, which has moved the store while this one was away.
    const when = [{ key, is: "equal", value: this.#mark } as const];
    await this.#translated(() => client.txn({ when, success: [{ delete: { key } }] }, { repeat: true }));
  }

  async release(): Promise<void> {
    await this.#held?.release();
  }

  async #translated<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw error instanceof EtcdError ? etcdFailure(`Moving "${this.#prefix}" in etcd`, error) : error;
    }
  }
}
