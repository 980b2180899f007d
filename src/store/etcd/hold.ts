/** Holds a log that no davit uses, so that none leads it while it is read or written as a whole. */

import type { Clock } from "../../lib/clock.ts";
import { WalError } from "../core/log-port.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import { EtcdError } from "./client/etcd-error.ts";
import { bytesOf } from "./client/messages.ts";
import type { Layout } from "./layout.ts";
import { fieldsOf } from "./member-fields.ts";

export interface HoldOptions {
  readonly client: EtcdClient;
  readonly layout: Layout;
  readonly clock: Clock;
}

export interface HeldLog {
  /** The revision in which the key of the leader was made: a fence, as in `Election`. */
  readonly revision: number;
  /** Idempotent. */
  release(): Promise<void>;
}

const leaseSeconds = 10;
const holder = "davit migrate-store or restore";

/** @throws {EtcdError}; {WalError} locked when a davit uses the log. */
export async function holdLog(options: HoldOptions): Promise<HeldLog> {
  const { client, layout } = options;
  await refuseInUse(options);
  const { id: lease } = await client.leaseGrant(leaseSeconds);
  const answer = await client.txn(
    {
      when: [{ key: layout.leader, is: "equal", createRevision: 0 }],
      success: [{ put: { key: layout.leader, value: bytesOf(JSON.stringify({ id: holder })), lease } }],
      failure: [{ range: { key: layout.leader } }],
    },
    { repeat: true },
  );
  const found = answer.answers[0]?.keys[0];
  // A first try without an answer may have made the key.
  if (!answer.succeeded && found?.lease !== lease) throw inUse(holder);
  const ending = new AbortController();
  const renewing = renew(options, lease, ending.signal);
  const release = async () => {
    ending.abort();
    await renewing;
    await unlessGone(client.leaseRevoke(lease, { withinMs: 1_000 }));
  };
  return { revision: answer.succeeded ? answer.header.revision : (found?.createRevision ?? 0), release };
}

/** @param isHeld true if this process has the key of the leader. @throws {EtcdError}; {WalError} locked. */
export async function refuseInUse({ client, layout }: HoldOptions, isHeld = false): Promise<void> {
  const { keys } = await client.range(layout.membership);
  // The last key is that of a member, which has a name, if there is one.
  const user = keys.findLast(({ key }) => key !== layout.level && (!isHeld || key !== layout.leader));
  if (user === undefined) return;
  const { id, name = id } = fieldsOf(user) ?? {};
  throw inUse(String(name ?? user.key));
}

async function renew({ client }: HoldOptions, lease: bigint, signal: AbortSignal): Promise<void> {
  const renewals = client.keepAlive(lease, { everyMs: (leaseSeconds * 1_000) / 3, signal });
  const all = async () => {
    for await (const _renewal of renewals);
  };
  await unlessGone(all());
}

/** Work whose failure the next fenced write shows. */
async function unlessGone(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof EtcdError)) throw error;
  }
}

function inUse(user: string): WalError {
  const advice = "stop every davit that uses this prefix, wait ten seconds, and try again";
  return new WalError("locked", `Locking the log in etcd: "${user}" uses it; ${advice}`);
}
