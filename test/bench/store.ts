/**
 * `npm run bench:store`: the store beside etcd 3.4, both as processes of their own on one disk.
 * `-- --rounds 15 --seconds 1 --modes get,put` are its presets and a choice.
 */

import { cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { startPeers } from "./store-peers.ts";
import { loadSpeedKeys, measureSpeed, type SpeedRow } from "./store-speed.ts";

await main();

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "15" },
      seconds: { type: "string", default: "1" },
      modes: { type: "string", default: "" },
    },
  });
  const peers = await startPeers();
  try {
    for (const peer of peers) await loadSpeedKeys(peer);
    const options = { rounds: Number(values.rounds), roundSeconds: Number(values.seconds) };
    const names = values.modes.split(",").filter((name) => name !== "");
    const rows = await measureSpeed(peers, options, names);
    print(`${cpus().length} x ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB; Node ${process.version}`);
    printRows(rows);
  } finally {
    for (const peer of peers) await peer.stop();
  }
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
