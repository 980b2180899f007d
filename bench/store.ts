/**
 * `npm run bench:store`: the store beside etcd 3.4, both as processes of their own on one disk. It prints the table of
 * bench/RESULTS.md.
 *
 *   npm run bench:store -- --rounds 15 --seconds 1 --modes get,put --parts speed,watch,memory,members --keys 1000000
 */

import { cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { benchMembers } from "./store-members.ts";
import { measureMemory } from "./store-memory.ts";
import { type Peer, startPeers } from "./store-peers.ts";
import { loadSpeedKeys, measureSpeed, type SpeedRow } from "./store-speed.ts";
import { measureWatch } from "./store-watch.ts";

await main();

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "15" },
      seconds: { type: "string", default: "1" },
      modes: { type: "string", default: "" },
      parts: { type: "string", default: "speed,watch,memory,members" },
      keys: { type: "string", default: "1000000" },
    },
  });
  const rounds = Number(values.rounds);
  const parts = listOf(values.parts);
  print(`${cpus().length} x ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB; Node ${process.version}\n`);
  if (parts.includes("speed")) await withPeers((peers) => speed(peers, rounds, values));
  if (parts.includes("watch")) await withPeers((peers) => watch(peers, rounds));
  if (parts.includes("members")) {
    const modes = values.modes === "" ? ["put"] : listOf(values.modes);
    await benchMembers({ rounds, roundSeconds: Number(values.seconds), modes });
  }
  if (parts.includes("memory")) await withPeers((peers) => memory(peers, Number(values.keys)));
}

type Peers = readonly [davit: Peer, etcd: Peer];

async function withPeers(use: (peers: Peers) => Promise<void>): Promise<void> {
  const peers = await startPeers();
  try {
    await use(peers);
  } finally {
    for (const peer of peers) await peer.stop();
  }
}

async function speed(
  peers: Peers,
  rounds: number,
  { seconds, modes }: { readonly seconds: string; readonly modes: string },
): Promise<void> {
  for (const peer of peers) await loadSpeedKeys(peer);
  printRows(await measureSpeed(peers, { rounds, roundSeconds: Number(seconds) }, listOf(modes)));
}

async function watch(peers: Peers, rounds: number): Promise<void> {
  const { davitMs, etcdMs, ratio } = await measureWatch(peers, rounds);
  print("\n| 1,000 watchers, one PUT | davit ms | etcd ms | ratio | target |\n|---|---|---|---|---|");
  print(
    `| last one notified after | ${davitMs.toFixed(1)} | ${etcdMs.toFixed(1)} | **${ratio.toFixed(2)}** | <= 1.0 |`,
  );
}

async function memory(peers: Peers, keyCount: number): Promise<void> {
  print(
    `\n| ${keyCount} keys of 100 bytes | load s | RSS after load | restart s | RSS after restart |\n|---|---|---|---|---|`,
  );
  const results = [];
  for (const peer of peers) results.push(await measureMemory(peer, keyCount));
  for (const { name, loadSeconds, loadedBytes, restartMs, restartedBytes } of results) {
    const seconds = [loadSeconds.toFixed(1), (restartMs / 1_000).toFixed(2)];
    print(`| ${name} | ${seconds[0]} | ${mebibytes(loadedBytes)} | ${seconds[1]} | ${mebibytes(restartedBytes)} |`);
  }
  const [davit, etcd] = results;
  if (davit === undefined || etcd === undefined) return;
  const loaded = davit.loadedBytes / etcd.loadedBytes;
  const restarted = davit.restartedBytes / etcd.restartedBytes;
  const restart = davit.restartMs / etcd.restartMs;
  print(`| ratio | | **${loaded.toFixed(2)}** | **${restart.toFixed(2)}** | **${restarted.toFixed(2)}** |`);
  print("| target | | <= 0.3 | <= 0.6 | <= 0.8 |");
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}

function listOf(text: string): readonly string[] {
  return text.split(",").filter((name) => name !== "");
}

function printRows(rows: readonly SpeedRow[]): void {
  print("| | davit /s | etcd /s | ratio | davit us | etcd us | CPU ratio | p99 ms davit, etcd | target |");
  print("|---|---|---|---|---|---|---|---|---|");
  for (const { what, target, davit, etcd, throughputRatio, cpuRatio } of rows) {
    const cells = [
      what,
      Math.round(davit.perSecond),
      Math.round(etcd.perSecond),
      `**${throughputRatio.toFixed(2)}**`,
      davit.cpuMicroseconds.toFixed(1),
      etcd.cpuMicroseconds.toFixed(1),
      cpuRatio.toFixed(2),
      `${davit.p99Ms.toFixed(1)}, ${etcd.p99Ms.toFixed(1)}`,
      target,
    ];
    print(`| ${cells.join(" | ")} |`);
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
