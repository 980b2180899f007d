/** The ids of a cluster, its members and their runs: 64 bits in lower-case hex, see `LogIdentity`. */

import { createHash } from "node:crypto";
import { objectFrom, parseJson, textFrom } from "../core/stored-json.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import { bytesOf } from "./client/messages.ts";
import { wentBack } from "./etcd-failure.ts";
import { Layout } from "./layout.ts";

type RandomBytes = (bytes: number) => Uint8Array;

interface ClusterPlace {
  readonly prefix: string;
  readonly random: RandomBytes;
}

/** The id of the cluster under the prefix, which is made where there is none. @throws {EtcdError}; {WalError} */
export async function clusterIdOf(client: EtcdClient, { prefix, random }: ClusterPlace): Promise<string> {
  const { meta, epoch } = new Layout(prefix);
  await client.txn(
    {
      when: [{ key: meta, is: "equal", createRevision: 0 }],
      success: [
        { put: { key: meta, value: bytesOf(JSON.stringify({ cluster: randomId(random) })) } },
        { put: { key: epoch, value: bytesOf("0") } },
      ],
    },
    { repeat: true },
  );
  const [found] = (await client.range({ key: meta })).keys;
  if (found === undefined) throw wentBack();
  return textFrom(objectFrom(parseJson(found.value)).cluster);
}

/** A random number other than 0, 64 bits in lower-case hex without leading zeros. */
export function randomId(random: RandomBytes): string {
  return hexOf(Buffer.from(random(8)));
}

/** The id of a name, in the same form. */
export function idOf(name: string): string {
  return hexOf(createHash("sha256").update(name).digest());
}

function hexOf(bytes: Buffer): string {
  const id = bytes.readBigUInt64LE();
  return (id === 0n ? 1n : id).toString(16);
}
