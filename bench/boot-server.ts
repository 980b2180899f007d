/**
 * The boot service as `davit serve` runs it, over a store on disk: with log, metrics, history, the ids of boots, the
 * machines that were seen, a ledger and the limits by client. Only the controller and its source are missing: 100,000
 * Groups would take minutes to come in by them.
 */

import { randomBytes } from "node:crypto";
import { BootService } from "../src/app/boot-service.ts";
import { sightingOf } from "../src/app/sight.ts";
import { Sightings } from "../src/controller/machines/sightings.ts";
import { KnownLedger } from "../src/ledger/known-ledger.ts";
import { systemClock } from "../src/lib/clock.ts";
import { createLog } from "../src/lib/create-log.ts";
import { diskFiles } from "../src/lib/files.ts";
import { createMetrics } from "../src/lib/metrics.ts";
import { davitRoot } from "../src/model/documents.ts";
import { readServeConfig } from "../src/options/serve.ts";
import type { SingleCommand } from "../src/store/command/command.ts";
import { storePath } from "../src/store/core/node.ts";
import { openStore } from "../src/store/open-store.ts";
import type { Store } from "../src/store/store.ts";
import { lockDirectory } from "../src/store/wal/lock.ts";
import { silentLog } from "../test/helpers/test-store.ts";

const addresses = ["--boot-address", "127.0.0.1:0", "--ops-address", "127.0.0.1:0"];
const documentsPerBatch = 1_000;

/** Opens a store in a directory, with these documents. */
export async function filledStore(
  directory: string,
  documents: Iterable<readonly [path: string, text: string]>,
): Promise<Store> {
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

/** @param options further ones of `davit serve`. @returns the port for machines, who are answered. */
export async function startBootServer(store: Store, options: readonly string[]): Promise<number> {
  const clock = systemClock;
  const paths = { isDirectory: () => true, isFile: () => true };
  const config = readServeConfig(["--manifests", "unread", ...addresses, ...options], {}, paths);
  const log = createLog({ level: "info", format: "json" });
  const sightings = new Sightings();
  const service = new BootService({
    ...{ config, log, clock, metrics: createMetrics("bench"), version: "bench" },
    ledger: new KnownLedger({ clock }),
    answered: (machine, answer) => sightings.saw(sightingOf(machine, answer, clock.nowMs())),
  });
  store.follow(davitRoot, service.index);
  const provenAtMs = () => clock.monotonicMs();
  await service.listenForOperators({ waitingFor: "", attention: () => [], provenAtMs, measure: () => {} });
  const { bootAddress } = await service.listenForMachines();
  await service.openWhenHeard(Promise.resolve());
  return bootAddress.port;
}
