/**
 * `make bench-assets`: a hot file of 64 MiB from `davit serve` and from nginx with sendfile, each a process of its own,
 * and what 10,000 clients that do not read cost davit. `--threads N` gives davit this many boot threads.
 *
 *   npm run bench:assets -- --rounds 15 --seconds 2 --connections 4,64 --parts speed,slow --clients 10000
 */

import { parseArgs } from "node:util";
import { AssetFolder, type AssetPeer, startDavitPeer, startNginx } from "./asset-peers.ts";
import { type Stops, startChild, threadOptions, withStops } from "./boot-contenders.ts";
import type { Child } from "./child.ts";
import { residentBytesOf } from "./process-usage.ts";
import { type AddFigure, runBenchmark, versionOf } from "./run.ts";
import { takeTurns } from "./turns.ts";

const fileBytes = 64 * 1024 * 1024;
const target = "/assets/kernel";

interface Download {
  readonly gibPerSecond: number;
  /** Processor time of the server for each GiB. */
  readonly cpuMs: number;
}

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "15" },
    seconds: { type: "string", default: "2" },
    connections: { type: "string", default: "4,64" },
    parts: { type: "string", default: "speed,slow" },
    clients: { type: "string", default: "10000" },
    threads: { type: "string", default: "1" },
  },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);
const threads = Number(values.threads);
const clients = Number(values.clients);
const parts = values.parts.split(",");

await withStops(async (stops) => {
  const folder = new AssetFolder(fileBytes);
  stops.push(async () => folder.remove());
  const load = startChild("asset-load-child.ts", stops);
  if (parts.includes("speed")) {
    await runBenchmark({
      name: "assets-speed",
      settings: { rounds, "s each": seconds, threads },
      peers: { nginx: versionOf("nginx", "-v") },
      measure: (add) => withStops((ofSpeed) => speed(folder, load, { stops: ofSpeed, add })),
    });
  }
  if (parts.includes("slow")) {
    const settings = { clients, threads };
    await runBenchmark({ name: "assets-slow", settings, measure: (add) => slow(folder, load, add) });
  }
});

async function speed(
  folder: AssetFolder,
  load: Child,
  { stops, add }: { readonly stops: Stops; readonly add: AddFigure },
): Promise<void> {
  const options = threadOptions(threads);
  const kept = async (peer: AssetPeer) => {
    stops.push(() => peer.stop());
    return peer;
  };
  const davit = await kept(await startDavitPeer(folder, options));
  const uncached = await kept(await startDavitPeer(folder, ["--limit", "assets-cache-bytes=0", ...options]));
  const nginx = await kept(await startNginx(folder, 1));
  const twoWorkers = await kept(await startNginx(folder, 2));
  const peers = [nginx, twoWorkers, davit, uncached];
  // davit caches a file that nobody has changed for two seconds.
  for (const peer of peers) await measure(peer, load, { connections: 4, durationMs: 1_500 });
  for (const connections of values.connections.split(",").map(Number)) {
    const how = { connections, durationMs: seconds * 1_000 };
    const found = await takeTurns(peers, rounds, (peer) => measure(peer, load, how));
    const compared = (own: AssetPeer, other: AssetPeer) => {
      const sides = (of: (download: Download) => number) => ({
        davit: found(own).map(of),
        beside: found(other).map(of),
      });
      const cpu = { unit: "ms/GiB", ...sides(({ cpuMs }) => cpuMs) };
      return { unit: "GiB/s", ...sides(({ gibPerSecond }) => gibPerSecond), cpu };
    };
    const what = `${connections} connections`;
    const goal = { of: "ratio", atLeast: connections < 16 ? 1.3 : 1 } as const;
    add({ what, peer: "nginx, 1 worker", ...compared(davit, nginx), goal, headline: `a file of 64 MiB, ${what}` });
    add({ what, peer: "nginx, 2 workers", ...compared(davit, twoWorkers) });
    add({ what: `${what}, without davit's cache`, peer: "nginx, 1 worker", ...compared(uncached, nginx) });
  }
}

async function measure(
  peer: AssetPeer,
  load: Child,
  how: { readonly connections: number; readonly durationMs: number },
): Promise<Download> {
  const before = peer.cpuMicroseconds();
  const numberOf = await load.askNumbers({ kind: "load", port: peer.port, target, ...how });
  const gibibytes = numberOf("bytes") / 2 ** 30;
  return {
    gibPerSecond: gibibytes / numberOf("seconds"),
    cpuMs: (peer.cpuMicroseconds() - before) / 1_000 / gibibytes,
  };
}

/** Clients that read the head of their answer and no more: with the cache, and with all read buffers in use. */
async function slow(folder: AssetFolder, load: Child, add: AddFigure): Promise<void> {
  for (const cacheBytes of [256 * 2 ** 20, 0]) {
    const name = cacheBytes === 0 ? "no cache" : `cache of ${cacheBytes / 2 ** 20} MiB`;
    const peer = await startDavitPeer(folder, [
      "--limit",
      `assets-cache-bytes=${cacheBytes}`,
      ...threadOptions(threads),
    ]);
    try {
      await measure(peer, load, { connections: 4, durationMs: 3_000 });
      const memory = () => ({ unit: "MiB", davit: [residentBytesOf(peer.pid) / 2 ** 20] });
      add({ what: `${name}: memory before`, ...memory() });
      const numberOf = await load.askNumbers({ kind: "slow", port: peer.port, target, connections: clients });
      add({ what: `${name}: memory with the clients`, ...memory() });
      add({ what: `${name}: answered`, unit: "", davit: [numberOf("accepted")] });
      add({ what: `${name}: answered 503`, unit: "", davit: [numberOf("refused")] });
      const goal = { of: "davit", atMost: 0 } as const;
      add({ what: `${name}: without an answer`, unit: "", davit: [numberOf("failed")], goal });
      await load.askNumbers({ kind: "close" });
    } finally {
      await peer.stop();
    }
  }
}
