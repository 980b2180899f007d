/**
 * Reads the keys of the members and of the leader. Anybody with access to etcd may write anything there. So davit
 * ignores and reports a key that no davit wrote: it stands for no member, and no member ends because of it.
 */

import { WalError } from "../core/log-port.ts";
import { objectFrom, parseJson, type StoredFields } from "../core/stored-json.ts";
import type { EtcdKey } from "./client/messages.ts";

/** What a key holds; undefined unless it is a JSON object under a lease, as davit writes it. */
export function fieldsOf({ value, lease }: EtcdKey): StoredFields | undefined {
  return lease === 0n ? undefined : orUnreadable(() => objectFrom(parseJson(value)));
}

/** The result of reading stored fields; undefined if they are not what davit writes. */
export function orUnreadable<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof WalError)) throw error;
    return undefined;
  }
}
