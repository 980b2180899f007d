/** The places of a store that commands read or write as a whole: a data directory, or a prefix in etcd. */

import { randomBytes } from "node:crypto";
import { etcdAccess } from "../../app/core/etcd-access.ts";
import { ledgerPrefix } from "../../app/core/members.ts";
import { systemClock } from "../../lib/clock.ts";
import { diskFiles } from "../../lib/files/files.ts";
import { etcdOptions } from "../../options/etcd.ts";
import { type Environment, readTable, type Values } from "../../options/parsing.ts";
import { newDirectoryOption } from "../../options/readers.ts";
import { DirectoryPlace, type DirectoryPlaceOptions } from "../../store/move/directory-place.ts";
import type { PrefixPlace } from "../../store/move/prefix-place.ts";
import { lockDirectory } from "../../store/wal/lock.ts";

// Only members of a store have it.
const { storeEtcdShared: _shared, ...ofEtcd } = etcdOptions;

/** The options that name both places. */
export const placeOptions = {
  dataDir: newDirectoryOption("data-dir", "the data directory"),
  ...ofEtcd,
  storeEtcdEndpoints: { ...ofEtcd.storeEtcdEndpoints, help: "the etcd v3, such as https://etcd-0:2379" },
};

type PlaceValues = Values<typeof placeOptions>;

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

/** A data directory. @param more its `doing`, see `DirectoryPlaceOptions`. */
export function directoryPlace(
  directory: string,
  more: Pick<DirectoryPlaceOptions, "doing" | "leaving">,
): DirectoryPlace {
  return new DirectoryPlace({ ...more, directory, files: diskFiles, lock: lockDirectory, random: randomBytes });
}

/** The name of a prefix in etcd, for people. */
export function prefixName({ storeEtcdEndpoints: urls = [], storeEtcdPrefix: prefix }: PlaceValues): string {
  return `"${prefix}" in the etcd of ${urls.map(({ origin }) => origin).join(",")}`;
}

/**
 * Does some work with places in etcd: that of the store, and that of its ledger. The client of etcd takes time and
 * memory, so it is loaded only now.
 * @param doing see `PrefixPlaceOptions`.
 */
export async function withPrefix<Result>(
  values: PlaceValues,
  doing: string,
  work: (place: PrefixPlace, ledgerPlace: PrefixPlace) => Promise<Result>,
): Promise<Result> {
  const { EtcdClient: Client } = await import("../../../packages/etcd-client/src/etcd-client.ts");
  const { Layout } = await import("../../store/etcd/layout.ts");
  const { PrefixPlace: Place } = await import("../../store/move/prefix-place.ts");
  const { storeEtcdEndpoints: endpoints = [], storeEtcdPrefix: prefix } = values;
  const client = Client.open({
    endpoints,
    ...etcdAccess(values),
    clock: systemClock,
    // A command has no log.
    log: { warn() {} },
    random: () => (randomBytes(1)[0] ?? 0) / 256,
  });
  const shared = { client, clock: systemClock, doing };
  const ledger = ledgerPrefix(prefix);
  // A moved store takes no ledger with it.
  const place = new Place({ ...shared, prefix, removed: new Layout(ledger).all });
  try {
    return await work(place, new Place({ ...shared, prefix: ledger }));
  } finally {
    client.close();
  }
}
