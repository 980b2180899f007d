/**
 * The last batch that this member delivered, as a proof that the log in etcd is the one that it knows. An etcd that was
 * restored from a backup may have a longer log by now, at later revisions. But it does not have this batch: its id is
 * random, and no other history has the same id at the same revision.
 */

import type { EtcdCompare, EtcdKey } from "./client/messages.ts";
import type { LogPosition } from "./delivery.ts";
import type { Layout } from "./layout.ts";
import { oldestEpoch } from "./snapshots.ts";

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
