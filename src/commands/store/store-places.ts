/** The places of a store that commands read or write as a whole: a data directory, or a prefix in etcd. */

import { randomBytes } from "node:crypto";
import { etcdAccess } from "../../app/core/etcd-access.ts";
import { ledgerPrefix } from "../../app/core/members.ts";
import { systemClock } from "../../lib/clock.ts";
import { diskFiles } from "../../lib/files/files.ts";
import type { Log } from "../../lib/log.ts";
import { etcdOptions } from "../../options/etcd.ts";
import { type Environment, readTable, type Values } from "../../options/parsing.ts";
import { newDirectoryOption } from "../../options/readers.ts";
import type { NewPlace } from "../../store/core/log-port.ts";
import type { EtcdClient } from "../../store/etcd/client/etcd-client.ts";
import { lockDirectory } from "../../store/wal/lock.ts";
import { NewDirectory } from "../../store/wal/new-directory.ts";

// Only members of a store have these two.
const { storeEtcdLeaseMs: _lease, storeEtcdShared: _shared, ...ofEtcd } = etcdOptions;

/** The options that name both places. */
export const placeOptions = {
  dataDir: newDirectoryOption("data-dir", "the data directory"),
  ...ofEtcd,
  storeEtcdEndpoints: { ...ofEtcd.storeEtcdEndpoints, help: "the etcd v3, such as https://etcd-0:2379" },
};

export type PlaceValues = Values<typeof placeOptions>;

/** What is of no use to a command: the client logs only why it logs in again. */
const silent: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };

/**
 * Removes the variables of the place that is not meant. A flag means its place. Without flags it is etcd, because a
 * container of `davit serve` sets `DAVIT_DATA_DIR`, too.
 */
export function withoutOtherPlace(args: readonly string[], environment: Environment): Environment {
  const { dataDir, storeEtcdEndpoints } = placeOptions;
  const flags = readTable({ dataDir, storeEtcdEndpoints }, args, {}).values;
  if (flags.storeEtcdEndpoints !== undefined) return without("DAVIT_DATA_DIR", environment);
  if (flags.dataDir !== undefined) return without("DAVIT_STORE_ETCD_", environment);
  return environment.DAVIT_STORE_ETCD_ENDPOINTS === undefined ? environment : without("DAVIT_DATA_DIR", environment);
}

function without(prefix: string, environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith(prefix)));
}

/** The data directory, in which a store may begin. @param doing see `NewDirectoryOptions`. */
export function newDirectory(directory: string, doing: string): NewPlace {
  return new NewDirectory({ directory, doing, files: diskFiles, lock: lockDirectory, random: randomBytes });
}

/** The name of a prefix in etcd, for people. */
export function prefixName({ storeEtcdEndpoints: urls = [], storeEtcdPrefix: prefix }: PlaceValues): string {
  return `"${prefix}" in the etcd of ${urls.map(({ origin }) => origin).join(",")}`;
}

/** Does some work with a client of etcd, which it loads only now: it takes time and memory. */
export async function withEtcd<Result>(
  values: PlaceValues,
  work: (client: EtcdClient) => Promise<Result>,
): Promise<Result> {
  const { EtcdClient: Client } = await import("../../store/etcd/client/etcd-client.ts");
  const endpoints = values.storeEtcdEndpoints ?? [];
  const client = Client.open({
    endpoints,
    ...etcdAccess(values),
    clock: systemClock,
    log: silent,
    random: () => (randomBytes(1)[0] ?? 0) / 256,
  });
  try {
    return await work(client);
  } finally {
    client.close();
  }
}

/** Does some work with a prefix in etcd below which a store may begin. @param doing see `NewPrefixOptions`. */
export async function withNewPrefix<Result>(
  values: PlaceValues,
  doing: string,
  work: (place: NewPlace, ledgerPlace: NewPlace) => Promise<Result>,
): Promise<Result> {
  const { NewPrefix } = await import("../../store/etcd/new-prefix.ts");
  const { storeEtcdPrefix } = values;
  return await withEtcd(values, (client) => {
    const at = (prefix: string) => new NewPrefix({ client, clock: systemClock, prefix, doing });
    return work(at(storeEtcdPrefix), at(ledgerPrefix(storeEtcdPrefix)));
  });
}
