/** Reads a log that no davit uses, from its newest snapshot to its end. It changes nothing. */

import type { Clock } from "../../lib/clock.ts";
import { type CommittedListener, type Snapshot, WalError } from "../core/log-port.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import { Delivery, type LogPosition, logStart } from "./delivery.ts";
import { FormatLevel } from "./format-level.ts";
import { LargeBatches } from "./large-batches.ts";
import type { Layout } from "./layout.ts";
import { EtcdSnapshots } from "./snapshots.ts";
import { Tail } from "./tail.ts";

export interface ReadLogParts {
  readonly client: EtcdClient;
  readonly layout: Layout;
  readonly clock: Clock;
}

export interface LogReader {
  readonly restore: (snapshot: Snapshot) => Promise<void>;
  readonly committed: CommittedListener;
}

/** @returns the end of the log. @throws {EtcdError}; {WalError} when the log cannot be read as a whole. */
export async function readLog({ client, layout, clock }: ReadLogParts, reader: LogReader): Promise<LogPosition> {
  const snapshot = await new EtcdSnapshots({ client, layout, compact: false }).load();
  if (snapshot !== undefined) await reader.restore(snapshot);
  const formats = new FormatLevel();
  const large = new LargeBatches({ client, layout, formats });
  const stop = (error: unknown) => delivery.stop(error instanceof WalError ? error : incomplete(error));
  const changed = () => stop(incomplete(undefined));
  const delivery: Delivery = new Delivery({
    formats,
    from: snapshot?.position ?? logStart,
    listener: reader.committed,
    own: { has: () => false, take: () => undefined },
    clockRead() {},
    termBegan() {},
    fetch: (name, frame) => large.fetch(name, frame),
    stalled: changed,
    wentBack: changed,
    failed: stop,
  });
  const leftBehind = () => Promise.reject(incomplete(undefined));
  const tail = new Tail({
    client,
    layout,
    clock,
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
