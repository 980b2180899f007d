/** `--limit NAME=VALUE`: what only bounds or paces davit, and what few people set. */

import { nearestWord } from "../lib/text/nearest-word.ts";
import { type Option, OptionRefusal, type OptionTable, type Values } from "./parsing.ts";
import { one, readBytes, readBytesOrNone, readCount, readDuration, readLabel, readWait } from "./readers.ts";

/** The limits that `davit serve` and `davit boot` share. */
const serviceLimits = {
  sourceGraceMs: {
    flag: "source-grace",
    value: "DURATION",
    preset: "10s",
    help: "how long a restarted davit waits for the source or the store; after that it serves the copy on disk",
    read: one(readDuration),
  } satisfies Option<number>,
  assetsMaxBytes: {
    flag: "assets-max-bytes",
    value: "BYTES",
    preset: "34359738368",
    help: "davit fetches no asset of a Profile that makes --assets-dir larger than this; 0: no limit",
    read: one(readBytesOrNone),
  } satisfies Option<number>,
  assetsCacheBytes: {
    flag: "assets-cache-bytes",
    value: "BYTES",
    preset: "268435456",
    help: "memory for assets that machines request repeatedly; 0: none",
    read: one(readBytesOrNone),
  } satisfies Option<number>,
};

const serveLimits = {
  ...serviceLimits,
  watchSilenceMs: {
    flag: "watch-silence",
    value: "DURATION",
    preset: "150s",
    help: "after this time without a message on a watch of the cluster, end the watch and list its objects anew",
    read: one(readWait),
  } satisfies Option<number>,
  backupKeep: {
    flag: "backup-keep",
    value: "COUNT",
    preset: "7",
    help:
      "how many backups of --backup-every to keep; davit removes older ones and unfinished ones of the same store, " +
      "and no other file",
    read: one(readCount),
  } satisfies Option<number>,
  storeMaxValueBytes: {
    flag: "store-max-value-bytes",
    value: "BYTES",
    preset: "1048576",
    help: "longest value that a client of the store may write",
    read: one(readBytes),
  } satisfies Option<number>,
  // Each watch needs about 10 KiB, most of it for the connection.
  storeMaxWatchers: {
    flag: "store-max-watchers",
    value: "COUNT",
    preset: "10000",
    help: "how many watches of keys may wait at a time",
    read: one(readCount),
  } satisfies Option<number>,
  storeEtcdLeaseMs: {
    flag: "store-etcd-lease",
    value: "DURATION",
    preset: "5s",
    help: "with --store-etcd-endpoints, another member leads when the leader was not heard for so long",
    read: one(readWait),
  } satisfies Option<number>,
};

/** Of `davit boot`, and of what it shares with `davit serve`. */
export const limitsOfBoot = limitOption(serviceLimits);

export const limitsOfServe = limitOption(serveLimits);

function limitOption<Limits extends OptionTable>(limits: Limits) {
  return {
    flag: "limit",
    value: "NAME=VALUE",
    repeatable: true,
    names: limits,
    help: `a limit: ${namesOf(limits).join(", ")}`,
    read: (texts) => readLimits(limits, texts),
  } satisfies Option<Values<Limits>>;
}

function namesOf(limits: OptionTable): readonly string[] {
  return Object.values(limits).map(({ flag }) => flag);
}

/** Reads values of limits by name. A limit that is not given has its default. */
function readLimits<Limits extends OptionTable>(
  limits: Limits,
  texts: readonly string[],
): Values<Limits> | OptionRefusal {
  const given = new Map<string, string>();
  for (const text of texts.filter((each) => each !== "")) {
    const pair = readLabel(text);
    if (pair instanceof OptionRefusal) return pair;
    const [name, value] = pair;
    if (given.has(name)) return new OptionRefusal(`${name} is given twice: keep one`);
    if (!namesOf(limits).includes(name)) return unknownName(name, namesOf(limits));
    given.set(name, value);
  }
  const values: Record<string, unknown> = {};
  for (const [key, { flag, preset = "", read }] of Object.entries(limits)) {
    const value = read([given.get(flag) ?? preset]);
    if (value instanceof OptionRefusal) return new OptionRefusal(`${flag} ${value.rule}`);
    values[key] = value;
  }
  return values as Values<Limits>;
}

function unknownName(name: string, names: readonly string[]): OptionRefusal {
  const meant = nearestWord(name, names);
  const cure = meant === undefined ? "the names are" : `write ${meant}; all names are`;
  return new OptionRefusal(`no limit "${name}": ${cure} ${names.join(", ")}`);
}
