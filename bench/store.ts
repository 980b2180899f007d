/**
 * `make bench-store`: the store beside etcd 3.4, both as processes of their own on one disk.
 *
 *   npm run bench:store -- --rounds 15 --seconds 1 --modes get,put --parts speed,watch,members,memory --keys 1000000
 */

import { parseArgs } from "node:util";
import { type AddFigure, runBenchmark, versionOf } from "./run.ts";
import { benchMembers } from "./store-members.ts";
import { measureMemory } from "./store-memory.ts";
import { type Peer, startPeers } from "./store-peers.ts";
import { loadSpeedKeys, measureSpeed } from "./store-speed.ts";
import { measureWatch, watcherCount } from "./store-watch.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "15" },
    seconds: { type: "string", default: "1" },
    modes: { type: "string", default: "" },
    parts: { type: "string", default: "speed,watch,members,memory" },
    keys: { type: "string", default: "1000000" },
  },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);
const keys = Number(values.keys);
const parts = listOf(values.parts);
const modes = listOf(values.modes);
const pace = { rounds, roundSeconds: seconds };
const peers = { etcd: versionOf("etcd", "--version") };
const settings = { rounds, "s each": seconds };

if (parts.includes("speed")) {
  const measure = withPeers(async (both, add) => {
    for (const peer of both) await loadSpeedKeys(peer);
    await measureSpeed(both, { ...pace, modes }, add);
  });
  await runBenchmark({ name: "store-speed", settings, peers, measure });
}
if (parts.includes("watch")) {
  const measure = withPeers((both, add) => measureWatch(both, rounds, add));
  await runBenchmark({ name: "store-watch", settings: { rounds, watchers: watcherCount }, peers, measure });
}
if (parts.includes("members")) {
  const measure = (add: AddFigure) => benchMembers({ ...pace, modes: modes.length === 0 ? ["put"] : modes }, add);
  await runBenchmark({ name: "store-members", settings, peers, measure });
}
if (parts.includes("memory")) {
  const measure = withPeers((both, add) => measureMemory(both, keys, add));
  await runBenchmark({ name: "store-memory", settings: { keys }, peers, measure });
}

type Peers = readonly [davit: Peer, etcd: Peer];

function withPeers(use: (both: Peers, add: AddFigure) => Promise<void>): (add: AddFigure) => Promise<void> {
  return async (add) => {
    const both = await startPeers();
    try {
      await use(both, add);
    } finally {
      for (const peer of both) await peer.stop();
    }
  };
}

function listOf(text: string): readonly string[] {
  return text.split(",").filter((name) => name !== "");
}
