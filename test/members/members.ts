/** Stores of several davits on one etcd, in this process, each behind a proxy of its own. */

import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import type { SingleCommand } from "../../src/store/command/command.ts";
import { type Action, type StoreEvent, storePath } from "../../src/store/core/node.ts";
import { type OpenEtcdStoreOptions, openEtcdStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { type EtcdProxy, startEtcdProxy } from "../helpers/etcd-proxy.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";

/** A log that tests can wait for. */
export interface HeardLog extends Log {
  /** The messages so far. */
  readonly messages: readonly string[];
  /** Resolves when `message` is logged for the next time. */
  next(message: string): Promise<void>;
}

export function heardLog(): HeardLog {
  const messages: string[] = [];
  const waiting: { readonly message: string; readonly resolve: () => void }[] = [];
  const hear = (_data: object, message: string) => {
    messages.push(message);
    for (const each of waiting.filter((one) => one.message === message)) {
      waiting.splice(waiting.indexOf(each), 1);
      each.resolve();
    }
  };
  const next = (message: string) => new Promise<void>((resolve) => waiting.push({ message, resolve }));
  return { debug: hear, info: hear, warn: hear, error: hear, child: () => heardLog(), messages, next };
}

export interface StoreMember {
  readonly store: Store;
  readonly log: HeardLog;
  /** One for each endpoint. */
  readonly proxies: readonly EtcdProxy[];
  stop(): Promise<void>;
}

export type StoreMemberOptions = Partial<OpenEtcdStoreOptions> & {
  readonly endpoints: readonly URL[];
  readonly prefix: string;
};

/** Opens the store of a davit. A lease of two seconds is the shortest one that etcd gives. */
export async function openStoreMember(name: string, options: StoreMemberOptions): Promise<StoreMember> {
  const proxies = await Promise.all(options.endpoints.map((url) => startEtcdProxy(url)));
  const log = heardLog();
  const stopProxies = () => Promise.all(proxies.map((proxy) => proxy.stop()));
  const opening = openEtcdStore({
    member: { name, clientUrls: [`http://${name}.test`] },
    clock: systemClock,
    log,
    random: randomBytes,
    leaseSeconds: 2,
    ...options,
    endpoints: proxies.map(({ url }) => url),
  });
  const store = await opening.catch(async (error: unknown) => {
    await stopProxies();
    throw error;
  });
  const stop = async () => {
    await store.stop();
    await stopProxies();
  };
  return { store, log, proxies, stop };
}

/** The members of the present test. Each test has a store of its own in the etcd of its suite. */
export interface TestMembers {
  /** Those that stop after the test: at first all that were opened. */
  all: readonly StoreMember[];
  readonly endpoints: readonly URL[];
  readonly prefix: string;
  open(name: string, options?: Partial<StoreMemberOptions>): Promise<StoreMember>;
}

/** Starts an etcd for the suite that calls this, and stops the members after each test. */
export function membersOnOneEtcd(): TestMembers {
  let etcd: EtcdMembers;
  let cluster = 0;
  const members: TestMembers = {
    all: [],
    get endpoints() {
      return etcd.urls;
    },
    get prefix() {
      return `/davit/${cluster}/`;
    },
    open: async (name, options) => {
      const { endpoints, prefix } = members;
      const member = await openStoreMember(name, { endpoints, prefix, ...options });
      members.all = [...members.all, member];
      return member;
    },
  };
  beforeAll(async () => {
    etcd = await startEtcdV3();
  });
  afterAll(() => etcd.stop());
  beforeEach(() => {
    cluster += 1;
    members.all = [];
  });
  afterEach(async () => {
    await Promise.all(members.all.map((member) => member.stop()));
  });
  return members;
}

/** Resolves once a member leads; with it. */
export async function leaderOf(members: readonly StoreMember[]): Promise<StoreMember> {
  return await new Promise((resolve) => {
    for (const member of members) {
      member.store.onLeadership((isLeading) => {
        if (isLeading) resolve(member);
      });
    }
  });
}

/** Members, after each of them has everything that was committed. */
export async function settled(members: readonly StoreMember[]): Promise<readonly Store[]> {
  const stores = members.map(({ store }) => store);
  await Promise.all(stores.map(({ membership }) => membership.barrier()));
  return stores;
}

/** Everything that clients can see of a store, and what they cannot: hidden nodes and the history. */
export function stateOf(store: Store): string {
  const nodes = [...store.dump()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return JSON.stringify({ nodes, events: store.events, indexes: store.indexes, run: store.run }, undefined, 1);
}

/** Resolves with the next event of an action at a path. */
export async function eventAt(store: Store, path: string, action: Action): Promise<StoreEvent> {
  return await new Promise((resolve, reject) => {
    const accepts = (event: StoreEvent) => event.action === action;
    const watch = store.watch(
      { path: storePath(path), accepts },
      {
        event: (event) => {
          resolve(event);
          return true;
        },
        closed: (end) => reject(new Error(`the watch ended: ${end}`)),
      },
    );
    watch.resume();
  });
}

export function set(path: string, value: string, ttlSeconds?: number): SingleCommand {
  return { kind: "set", path: storePath(path), value, ...(ttlSeconds === undefined ? {} : { ttlSeconds }) };
}

/** A clock that is wrong by a constant. */
export function clockOff(byMs: number): Clock {
  return { ...systemClock, nowMs: () => systemClock.nowMs() + byMs };
}
