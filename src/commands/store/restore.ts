import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { decodeEntry, encodeEntry, ledgerAddress, ledgerRootPath } from "../../installs/ledger/ledger-documents.ts";
import { systemClock } from "../../lib/clock.ts";
import { assert } from "../../lib/errors.ts";
import { diskFailure } from "../../lib/files/disk-sentence.ts";
import { diskFiles } from "../../lib/files/files.ts";
import { davitRoot } from "../../model/objects/documents.ts";
import type { CommandHelp, Environment, Values } from "../../options/parsing.ts";
import { fileOption, newDirectoryOption } from "../../options/readers.ts";
import { configWithout, type Paths, readOptions } from "../../options/rules.ts";
import { type ReadBackup, readBackup } from "../../store/backup/backup.ts";
import { isAtOrBelow, storePath } from "../../store/core/node.ts";
import { type NewPlace, restore as restoreBackup } from "../../store/move/places.ts";
import type { StoredNode } from "../../store/tree/tree-walk.ts";
import { workCommand } from "../core/command-line.ts";
import type { Host } from "../core/host.ts";
import { Progress } from "../core/progress.ts";
import { directoryPlace, placeOptions, prefixName, withoutOtherPlace, withPrefix } from "./store-places.ts";

const restoreOptions = {
  input: { ...fileOption("input", "the backup"), required: "No backup: give --input FILE" },
  ...placeOptions,
  dataDir: newDirectoryOption("data-dir", "the new data directory: an empty one, or one that does not exist"),
  storeEtcdEndpoints: {
    ...placeOptions.storeEtcdEndpoints,
    help: "begin the store in this etcd v3, instead of a data directory; nothing may be below --store-etcd-prefix",
  },
};

/** The options of `davit restore`, parsed. */
type RestoreConfig = Values<typeof restoreOptions>;

export const restoreHelp: CommandHelp = {
  usage: "restore --input FILE --data-dir DIR",
  purpose: "Begins a store with the keys of a backup. What machines boot is then read from the source again.",
  options: restoreOptions,
};

/**
 * `davit restore`: begins a store from a backup, without davit's own documents. So davit answers machines only from
 * objects that the source has now (docs/internals/decisions/0005-what-a-restore-brings-back.md).
 */
export const restore = workCommand({
  name: "restore",
  help: restoreHelp,
  readConfig: readRestoreConfig,
  work: async (config, host) => {
    await bringBack(config, host);
    return 0;
  },
});

async function bringBack(config: RestoreConfig, host: Host): Promise<void> {
  const { input, dataDir } = config;
  const doing = "Restoring to";
  if (config.storeEtcdEndpoints !== undefined) {
    const name = prefixName(config);
    return await withPrefix(config, doing, (place, ledger) => restoreTo({ place, ledger }, { input, name }, host));
  }
  // Without etcd, the options have a directory.
  const name = dataDir ?? "";
  const ledger = directoryPlace(join(name, "ledger"), { doing });
  await restoreTo({ place: directoryPlace(name, { doing }), ledger }, { input, name }, host);
}

/**
 * Reads the options of `davit restore`.
 * @throws {ConfigError} with every problem.
 */
export function readRestoreConfig(args: readonly string[], environment: Environment, paths: Paths): RestoreConfig {
  const { values, problems, faulty } = readOptions(restoreOptions, args, withoutOtherPlace(args, environment), paths);
  const { dataDir, storeEtcdEndpoints } = values;
  if (dataDir === undefined && storeEtcdEndpoints === undefined && !faulty.has("store-etcd-endpoints")) {
    problems.push("No place for the store: give --data-dir DIR, or --store-etcd-endpoints URL,URL");
  }
  if (dataDir !== undefined && storeEtcdEndpoints !== undefined) {
    problems.push("Two places for the store: give --data-dir or --store-etcd-endpoints, not both");
  }
  return configWithout(problems, values);
}

interface RestorePlaces {
  readonly place: NewPlace;
  /** Where the ledger of the restored store begins. It is inside the other place. */
  readonly ledger: NewPlace;
}

async function restoreTo(
  { place, ledger }: RestorePlaces,
  { input, name }: { readonly input: string; readonly name: string },
  host: Host,
): Promise<void> {
  await place.refuseUnlessEmpty();
  const backup = await readWhole(input);
  const shared = { backup, random: randomBytes, nowMs: systemClock.nowMs() };
  const { clusterId: cluster, index } = await restoreBackup({ ...shared, place, keep: ofUsers });
  const machines = machineCount(backup);
  if (machines !== undefined) await restoreBackup({ ...shared, place: ledger, keep: restoredLedgerNode });
  const sentence =
    `${name} has the keys of index ${backup.head.index}, as cluster ${cluster} at index ${index}. ` +
    `${ledgerSentence(machines)} Profiles and Groups come from the source once davit serve runs on it.`;
  new Progress(host, systemClock, "backup is being restored").done(
    sentence,
    { path: name, cluster, index, ...(machines !== undefined && { machines }) },
    "backup restored",
  );
}

/** Keeps everything except davit's own documents. */
function ofUsers(node: StoredNode): StoredNode | undefined {
  return isAtOrBelow(node.path, storePath(davitRoot)) ? undefined : node;
}

/** How many machines the ledger of a backup has; undefined for a backup without a ledger. */
function machineCount({ tree }: ReadBackup): number | undefined {
  let count: number | undefined;
  for (const { path } of tree.walk(storePath(davitRoot))) {
    if (!isAtOrBelow(path, ledgerRootPath)) continue;
    count = (count ?? 0) + (ledgerAddress(path)?.kind === "entry" ? 1 : 0);
  }
  return count;
}

function ledgerSentence(machines: number | undefined): string {
  const grants = "A new ledger begins, and every grant is asleep.";
  if (machines === undefined) return `The backup has no ledger of installs. ${grants}`;
  return `The ledger's ${machines} machines count as installed. ${grants}`;
}

async function readWhole(path: string): Promise<ReadBackup> {
  try {
    return await readBackup(() => diskFiles.readPieces(path), `"${path}"`);
  } catch (error) {
    throw diskFailure("Reading", path, error);
  }
}

/**
 * Selects what a restore takes from the ledger of a backup. The ledger is older than the lost one, so it may only close
 * permits:
 *
 * - The ledger itself is not restored: another one begins, and no grant names it.
 * - Each machine counts as installed, even if its install had failed or had not ended: it may have succeeded since.
 * - Labels that machines have reported are not restored: a machine may have reported others since.
 *
 * @returns a node as a restored ledger has it; undefined for one that it does not have.
 */
export function restoredLedgerNode(node: StoredNode): StoredNode | undefined {
  if (!isAtOrBelow(node.path, ledgerRootPath)) return undefined;
  if (node.kind !== "file") return node;
  const address = ledgerAddress(node.path);
  if (address?.kind === "meta" || address?.kind === "marked") return undefined;
  // A document of a later davit stays: while there is one, nothing installs.
  return address?.kind === "entry" ? { ...node, value: restoredEntry(node.value) } : node;
}

function restoredEntry(text: string): string {
  const entry = decodeEntry(text);
  if (entry === undefined) return text;
  const { labels: _labels, ...kept } = entry;
  const restored = { ...kept, state: entry.state === "Installed" ? entry.state : ("Unconfirmed" as const) };
  assert(decodeEntry(encodeEntry(restored)) !== undefined, "A restored entry is readable");
  return encodeEntry(restored);
}
