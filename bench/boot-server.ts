/**
 * The boot service as `davit serve` runs it, over a store on disk: with log, metrics, history, the ids of boots, the
 * machines that were seen, a ledger and the limits by client. Only the controller and its source are missing, because
 * they would need minutes for 100,000 Groups.
 */

import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { BootService } from "../src/app/boot/boot-service.ts";
import { sightingOf } from "../src/app/core/sight.ts";
import { Sightings } from "../src/controller/machines/sightings.ts";
import { KnownLedger } from "../src/installs/ledger/known-ledger.ts";
import { systemClock } from "../src/lib/clock.ts";
import { diskFiles } from "../src/lib/files/files.ts";
import { createLog } from "../src/lib/logging/create-log.ts";
import { createMetrics } from "../src/lib/metrics/metrics.ts";
import { readServeConfig } from "../src/options/serve.ts";
import type { SingleCommand } from "../src/store/command/command.ts";
import { storePath } from "../src/store/core/node.ts";
import { openStore } from "../src/store/open-store.ts";
import type { Store } from "../src/store/store.ts";
import { lockDirectory } from "../src/store/wal/lock.ts";
import { silentLog } from "../test/helpers/test-store.ts";

const addresses = ["--boot-address", "127.0.0.1:0", "--ops-address", "127.0.0.1:0"];
const documentsPerBatch = 1_000;

async function filledStore(
  directory: string,
  documents: Iterable<readonly [path: string, text: string]>,
): Promise<Store> {
  await mkdir(directory);
  const outside = { files: diskFiles, lock: lockDirectory, clock: systemClock, random: randomBytes };
  const store = await openStore({ ...outside, directory, log: silentLog, onDamage: "refuse" });
  const commands = [...documents].map(setCommand);
  for (let from = 0; from < commands.length; from += documentsPerBatch) {
    await store.submit({ kind: "batch", commands: commands.slice(from, from + documentsPerBatch) });
  }
  return store;
}

export function setCommand([path, value]: readonly [path: string, text: string]): SingleCommand {
  return { kind: "set", path: storePath(path), value };
}

export interface BootServerStart {
  /** Where the directories of the stores are made. */
  readonly directory: string;
  readonly documents: Iterable<readonly [path: string, text: string]>;
  /** Further options of `davit serve`, as strings. */
  readonly options: unknown;
}

/** Starts the service. @returns its port, when it answers machines, and the store with the documents. */
export async function startBootServer({
  directory,
  documents,
  options,
}: BootServerStart): Promise<{ readonly port: number; readonly store: Store }> {
  const clock = systemClock;
  const store = await filledStore(join(directory, "store"), documents);
  const ledgerStore = await filledStore(join(directory, "ledger"), []);
  const paths = { isDirectory: () => true, isFile: () => true };
  const further = Array.isArray(options) ? options.map(String) : [];
  const config = readServeConfig(["--manifests", "unread", ...addresses, ...further], {}, paths);
  const log = createLog({ level: "info", format: "json" });
  const sightings = new Sightings();
  // Further boot threads follow both stores.
  const ofThreads = { feeds: { store, ledger: ledgerStore } };
  const metrics = createMetrics("bench");
  const service = new BootService({
    ...{ config, log, clock, metrics, version: "bench", ...ofThreads },
    ledger: new KnownLedger({ clock }),
    sighted: (seen) => {
      const sighting = sightingOf(seen, clock);
      if (sighting !== undefined) sightings.saw(sighting);
    },
  });
  service.follow(store);
  const provenAtMs = () => clock.monotonicMs();
  await service.listenForOperators({ waitingFor: "", attention: () => [], provenAtMs, measure: () => {} });
  const { bootAddress } = await service.listenForMachines();
  await service.openWhenHeard(Promise.resolve());
  const isComplete = async () => (await metrics.text()).includes(`\ndavit_boot_threads ${config.bootThreads}\n`);
  while (!(await isComplete())) await clock.sleep(50);
  return { port: bootAddress.port, store };
}
