/** The two logs behind one port, each with what its tests need. */

import { randomBytes } from "node:crypto";
import { systemClock } from "../../src/lib/clock.ts";
import type { CommittedListener, LogPort, MembershipListener } from "../../src/store/core/log-port.ts";
import { EtcdLog, type EtcdLogOptions } from "../../src/store/etcd/etcd-log.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { memoryFiles, openLog, silentLog } from "../helpers/test-store.ts";

/** The place where one log is kept, through every start. */
export interface LogPlace {
  open(): Promise<LogPort>;
}

export interface Driver {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** A place with nothing in it. */
  place(): LogPlace;
}

export const fileDriver: Driver = {
  name: "file",
  start: () => Promise.resolve(),
  stop: () => Promise.resolve(),
  place: () => {
    let files = memoryFiles();
    return {
      open: () => {
        files = files.reopened();
        return openLog(files);
      },
    };
  },
};

let etcd: EtcdMembers | undefined;
let places = 0;

export const etcdDriver: Driver = {
  name: "etcd",
  start: async () => {
    etcd = await startEtcdV3();
  },
  stop: async () => {
    await etcd?.stop();
  },
  place: () => {
    places += 1;
    const prefix = `/davit/${places}/`;
    return { open: () => openEtcdLog({ endpoints: etcd?.urls ?? [], prefix }) };
  },
};

/** Opens a log in etcd, for the member of a number. */
export function openEtcdLog(
  options: Pick<EtcdLogOptions, "endpoints" | "prefix"> & Partial<EtcdLogOptions>,
  member = 1,
): Promise<EtcdLog> {
  return EtcdLog.open({
    member: { name: `m${member}`, clientUrls: [`http://127.0.0.1:${member}`] },
    clock: systemClock,
    log: silentLog,
    random: randomBytes,
    ...options,
  });
}

interface Collected {
  readonly log: LogPort;
  /** As "sequence:text:term". */
  readonly delivered: string[];
  /** Resolves once this member leads. */
  readonly leads: Promise<void>;
}

/** Opens a log, and collects what it delivers. */
export async function collecting(log: LogPort, changes: Partial<MembershipListener> = {}): Promise<Collected> {
  const delivered: string[] = [];
  const { promise: leads, resolve } = Promise.withResolvers<void>();
  const membership: MembershipListener = {
    elected: resolve,
    deposed() {},
    leftBehind: () => Promise.reject(new Error("left behind")),
    ...changes,
  };
  const listener: CommittedListener = (sequence, bytes, term) => {
    delivered.push(`${sequence}:${Buffer.from(bytes)}:${term}`);
  };
  await log.onCommitted(listener, membership);
  if (log.membership.isLeader) resolve();
  return { log, delivered, leads };
}
