import { endFileLedger } from "../../installs/ledger/file-mark.ts";
import { systemClock } from "../../lib/clock.ts";
import { diskFiles } from "../../lib/files/files.ts";
import { tombstonesRoot } from "../../model/objects/documents.ts";
import type { Environment, Option, Values } from "../../options/parsing.ts";
import { one, readChoice } from "../../options/readers.ts";
import { configWithout, type Paths, readOptions } from "../../options/rules.ts";
import { moveStore, type StoppedStore } from "../../store/move/places.ts";
import { workCommand } from "../core/command-line.ts";
import type { Host } from "../core/host.ts";
import { Progress } from "../core/progress.ts";
import { directoryPlace, placeOptions, prefixName, withPrefix } from "./store-places.ts";

const options = {
  to: {
    flag: "to",
    value: "etcd|data-dir",
    required: "No direction: give --to etcd, or --to data-dir",
    help: "where the store goes; the other one is where it is now",
    read: one(readChoice(["etcd", "data-dir"])),
  } satisfies Option<"etcd" | "data-dir">,
  ...placeOptions,
  dataDir: { ...placeOptions.dataDir, required: "No data directory: give --data-dir DIR" },
  storeEtcdEndpoints: {
    ...placeOptions.storeEtcdEndpoints,
    required: "No etcd: give --store-etcd-endpoints URL,URL",
  },
};

type MigrateConfig = Values<typeof options>;

/** Reads the options of `davit migrate-store`. @throws {ConfigError} with every problem. */
export function readMigrateConfig(args: readonly string[], environment: Environment, paths: Paths): MigrateConfig {
  const { values, problems } = readOptions(options, args, environment, paths);
  return configWithout(problems, values);
}

/** `davit migrate-store`: moves a store from a data directory to etcd, or back. */
export const migrateStore = workCommand({
  name: "migrate-store",
  // A signal may end it at any moment: the new place then has no store yet.
  endsAtOnce: true,
  help: {
    usage: "migrate-store --to etcd --data-dir DIR --store-etcd-endpoints URL,URL",
    purpose: "Moves a store that no davit uses into an empty place. Clients keep their indexes, and watches go on.",
    options,
  },
  readConfig: readMigrateConfig,
  work: async (config, host) => {
    await move(config, host);
    return 0;
  },
});

async function move(config: MigrateConfig, host: Host): Promise<void> {
  const { dataDir: directory, to } = config;
  const etcd = prefixName(config);
  const now = { agelessRoot: tombstonesRoot, nowMs: systemClock.nowMs() };
  if (to === "etcd") {
    const from = directoryPlace(directory, { doing: "Moving", leaving: () => endFileLedger(diskFiles, directory) });
    const moved = await withPrefix(config, "Moving to", (place) =>
      moveStore({ ...now, from, to: place, toName: etcd }),
    );
    return report(host, etcd, moved);
  }
  const place = directoryPlace(directory, { doing: "Moving to" });
  const moved = await withPrefix(config, "Moving", (from) =>
    moveStore({ ...now, from, to: place, toName: `"${directory}"` }),
  );
  report(host, `"${directory}"`, moved);
}

function report(host: Host, place: string, { machine, clusterId: cluster }: StoppedStore): void {
  const { index } = machine.tree;
  const sentence = `${place} has the store of cluster ${cluster}, at index ${index}. Start davit on it.`;
  new Progress(host, systemClock, "store is being moved").done(sentence, { place, cluster, index }, "store moved");
}
