/**
 * `npm run bench:assets`: a hot file of 64 MiB from `davit serve` and from nginx with sendfile, each a process of its own,
 * and what 10,000 clients that do not read cost davit. It prints the tables of bench/RESULTS.md.
 *
 *   npm run bench:assets -- --rounds 9 --seconds 3 --connections 4,64 --parts speed,slow --clients 10000
 */

import { cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { AssetFolder, type AssetPeer, startDavitPeer, startNginx } from "./asset-peers.ts";
import { Child } from "./child.ts";
import { residentBytesOf } from "./process-usage.ts";
import { median, pairedRatio } from "./statistics.ts";

const fileBytes = 64 * 1024 * 1024;
const target = "/assets/kernel";

interface Measure {
  readonly gibPerSecond: number;
  /** Processor time of the server, and of its clients, for each GiB. */
  readonly cpuMs: number;
  readonly clientCpuMs: number;
}

await main();

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "9" },
      seconds: { type: "string", default: "3" },
      connections: { type: "string", default: "4,64" },
      parts: { type: "string", default: "speed,slow" },
      clients: { type: "string", default: "10000" },
    },
  });
  print(`${cpus().length} x ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB; Node ${process.version}\n`);
  const folder = new AssetFolder(fileBytes);
  const load = Child.start("asset-load-child.ts");
  try {
    const parts = values.parts.split(",");
    if (parts.includes("speed")) {
      const options = { rounds: Number(values.rounds), durationMs: Number(values.seconds) * 1_000 };
      await speed(folder, load, { ...options, connections: values.connections.split(",").map(Number) });
    }
    if (parts.includes("slow")) await slow(folder, load, Number(values.clients));
  } finally {
    await load.stop();
    folder.remove();
  }
}

interface SpeedOptions {
  readonly rounds: number;
  readonly durationMs: number;
  readonly connections: readonly number[];
}

async function speed(
  folder: AssetFolder,
  load: Child,
  { rounds, durationMs, connections }: SpeedOptions,
): Promise<void> {
  const peers = [
    await startNginx(folder, 1),
    await startNginx(folder, 2),
    await startDavitPeer(folder, "davit", []),
    await startDavitPeer(folder, "davit without cache", ["--assets-cache-bytes", "0"]),
  ];
  try {
    // davit keeps a file that was left alone for two seconds.
    for (const peer of peers) await measure(peer, load, { connections: 4, durationMs: 1_500 });
    print("| 64 MiB | GiB/s | ratio | server ms/GiB | ratio | clients ms/GiB |\n|---|---|---|---|---|---|");
    for (const count of connections) {
      const found = new Map<AssetPeer, Measure[]>(peers.map((peer) => [peer, []]));
      for (let round = 0; round < rounds; round++) {
        // Another one begins each round: what runs first finds a cooler machine.
        const turns = round % 2 === 0 ? peers : peers.toReversed();
        for (const peer of turns) found.get(peer)?.push(await measure(peer, load, { connections: count, durationMs }));
      }
      printRows(count, found);
    }
  } finally {
    for (const peer of peers) await peer.stop();
  }
}

async function measure(
  peer: AssetPeer,
  load: Child,
  how: { readonly connections: number; readonly durationMs: number },
): Promise<Measure> {
  const before = peer.cpuMicroseconds();
  const { bytes, seconds, cpuMicroseconds } = await load.ask(
    { kind: "load", port: peer.port, target, ...how },
    numbers,
  );
  const gibibytes = (bytes ?? 0) / 2 ** 30;
  return {
    gibPerSecond: gibibytes / (seconds ?? 0),
    cpuMs: (peer.cpuMicroseconds() - before) / 1_000 / gibibytes,
    clientCpuMs: (cpuMicroseconds ?? 0) / 1_000 / gibibytes,
  };
}

function printRows(connections: number, found: ReadonlyMap<AssetPeer, readonly Measure[]>): void {
  const [yardstick = []] = found.values();
  for (const [{ name }, measures] of found) {
    const middle = (of: (measure: Measure) => number) => median(measures.map(of));
    const ratio = (of: (measure: Measure) => number) => pairedRatio(measures.map(of), yardstick.map(of)).toFixed(2);
    const cells = [
      `${name}, ${connections} connections`,
      middle(({ gibPerSecond }) => gibPerSecond).toFixed(2),
      `**${ratio(({ gibPerSecond }) => gibPerSecond)}**`,
      Math.round(middle(({ cpuMs }) => cpuMs)),
      ratio(({ cpuMs }) => cpuMs),
      Math.round(middle(({ clientCpuMs }) => clientCpuMs)),
    ];
    print(`| ${cells.join(" | ")} |`);
  }
}

/** Clients that read the head of their answer and no more: with the cache, and with all read buffers in use. */
async function slow(folder: AssetFolder, load: Child, connections: number): Promise<void> {
  print(
    `\n| ${connections} clients that do not read | answered | 503 | RSS before | RSS with them |\n|---|---|---|---|---|`,
  );
  for (const cacheBytes of [256 * 2 ** 20, 0]) {
    const name = `cache of ${mebibytes(cacheBytes)}`;
    const peer = await startDavitPeer(folder, name, ["--assets-cache-bytes", String(cacheBytes)]);
    try {
      await measure(peer, load, { connections: 4, durationMs: 3_000 });
      const before = residentBytesOf(peer.pid);
      const { accepted, refused, failed } = await load.ask(
        { kind: "slow", port: peer.port, target, connections },
        numbers,
      );
      if (failed !== 0) throw new Error(`${failed} clients had no answer`);
      print(`| ${name} | ${accepted} | ${refused} | ${mebibytes(before)} | ${mebibytes(residentBytesOf(peer.pid))} |`);
      await load.ask({ kind: "close" }, numbers);
    } finally {
      await peer.stop();
    }
  }
}

function numbers(answer: unknown): Readonly<Record<string, number | undefined>> {
  const entries = Object.entries(typeof answer === "object" && answer !== null ? answer : {});
  return Object.fromEntries(entries.map(([name, value]) => [name, Number(value)]));
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
