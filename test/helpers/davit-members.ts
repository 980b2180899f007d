/** Three stores of davit on one etcd, in this process, each with its listener for keys. */

import { randomBytes } from "node:crypto";
import { systemClock } from "../../src/lib/clock.ts";
import { openEtcdStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { freePorts } from "../../tools/cluster/ports.ts";
import { type EtcdMembers, type EtcdMembersOptions, startEtcdV3 } from "./etcd-v3.ts";
import { type DavitKeys, startDavitKeys } from "./keys-servers.ts";
import { silentLog } from "./test-store.ts";

export interface DavitMembers {
  readonly etcd: EtcdMembers;
  /** The first one leads, unless it stops. */
  readonly all: readonly DavitKeys[];
  stop(): Promise<void>;
}

/** Starts three members. The first one leads. @param options of their etcd. */
export async function startDavitMembers(options: EtcdMembersOptions = {}): Promise<DavitMembers> {
  const etcd = await startEtcdV3(options);
  const all: DavitKeys[] = [];
  for (const number of [0, 1, 2]) {
    const keys = await startMember(number, etcd.urls);
    if (number === 0) await leading(keys.store);
    all.push(keys);
  }
  return {
    etcd,
    all,
    stop: async () => {
      await Promise.all(all.map((member) => member.stop()));
      await etcd.stop();
    },
  };
}

/** @param endpoints where this member finds etcd. */
export async function startMember(number: number, endpoints: readonly URL[]): Promise<DavitKeys> {
  const [port = 0] = await freePorts(1);
  const store = await openEtcdStore({
    endpoints,
    prefix: "/davit/",
    member: { name: `davit-${number}`, clientUrls: [`http://127.0.0.1:${port}`] },
    clock: systemClock,
    log: silentLog,
    random: randomBytes,
  });
  const keys = await startDavitKeys({ store, port });
  const stop = async () => {
    await keys.stop();
    await store.stop();
  };
  return { ...keys, stop };
}

function leading(store: Store): Promise<void> {
  return new Promise((resolve) =>
    store.onLeadership((isLeading) => {
      if (isLeading) resolve();
    }),
  );
}
