/** The key that `davit migrate-store` leaves where it moved a store away. */

import type { WalError } from "../core/log-port.ts";
import { movedAway } from "../core/moved.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import type { EtcdKey } from "./client/messages.ts";
import type { Layout } from "./layout.ts";

interface MarkedPlace {
  readonly client: EtcdClient;
  readonly layout: Layout;
}

/** @throws {EtcdError}; {WalError} unusable, if `davit migrate-store` moved the store to another place. */
export async function refuseMoved({ client, layout }: MarkedPlace): Promise<void> {
  const [mark] = (await client.range({ key: layout.moved })).keys;
  if (mark !== undefined) throw movedTo(layout, mark);
}

/** The error of a davit whose log was moved. @param mark the key that says where. */
export function movedTo(layout: Layout, mark: EtcdKey): WalError {
  return movedAway(`"${layout.all.key}" in etcd`, Buffer.from(mark.value).toString(), `the key "${layout.moved}"`);
}
