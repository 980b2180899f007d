/** The ids of a cluster, its members and their runs: 64 bits in lower-case hex, see `LogIdentity`. */

import { createHash } from "node:crypto";
import type { EtcdClient } from "../../../packages/etcd-client/src/etcd-client.ts";
import { object, text } from "../../lib/shape.ts";
import { idIn, randomId, WalError } from "../core/log-port.ts";
import { wentBack } from "./health.ts";
import { Layout, storedIn } from "./layout.ts";

export interface ClusterPlace {
  /** Of this cluster's keys; ends with a slash. */
  readonly prefix: string;
  readonly random: (bytes: number) => Uint8Array;
  /** False where a store was moved, so that none is begun. True unless given. */
  readonly mayBegin?: boolean;
}

/** The id of the cluster under the prefix, which is made where there is none. @throws {EtcdError}; {WalError} */
export async function clusterIdOf(
  client: EtcdClient,
  { prefix, random, mayBegin = true }: ClusterPlace,
): Promise<string> {
  const { meta, epoch } = new Layout(prefix);
  const known = await readClusterId(client, meta);
  // A full etcd refuses every transaction that may write, and a start must not need one.
  if (known !== undefined) return known;
  if (!mayBegin) throw noMovedStore(prefix);
  await client.txn(
    {
      when: [{ key: meta, is: "equal", createRevision: 0 }],
      success: [
        { put: { key: meta, value: JSON.stringify({ cluster: randomId(random).toString(16) }) } },
        { put: { key: epoch, value: "0" } },
      ],
    },
    { repeat: true },
  );
  const made = await readClusterId(client, meta);
  if (made === undefined) throw wentBack();
  return made;
}

function noMovedStore(prefix: string): WalError {
  const advice = 'give the prefix of the move, or remove the file "moved" and repeat davit migrate-store';
  const what = `there is no store at ${prefix}, and that of the data directory was moved: ${advice}`;
  return new WalError("unusable", `Opening the log in etcd: ${what}`);
}

/** The id in the key `meta`; undefined where no cluster was begun. @throws {EtcdError} */
export async function readClusterId(client: EtcdClient, meta: string): Promise<string | undefined> {
  const [found] = (await client.range({ key: meta })).keys;
  return found === undefined ? undefined : storedIn(object({ cluster: text }), found).cluster;
}

/** The id of a member, by a text that only this member has. */
export function idOf(name: string): string {
  return idIn(createHash("sha256").update(name).digest()).toString(16);
}
