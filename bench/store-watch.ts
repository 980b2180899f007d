/** How long one PUT takes to reach the last of 1,000 who watch its key, by long poll, beside etcd. */

import { RawConnection, requestText } from "./raw-client.ts";
import { median, pairedRatio } from "./statistics.ts";
import type { Peer } from "./store-peers.ts";

const watcherCount = 1_000;

/** Medians, and that of the ratios of paired rounds. */
export interface WatchResult {
  readonly davitMs: number;
  readonly etcdMs: number;
  readonly ratio: number;
}

export async function measureWatch([davit, etcd]: readonly [Peer, Peer], rounds: number): Promise<WatchResult> {
  const found: Record<Peer["name"], number[]> = { davit: [], etcd: [] };
  for (let round = -1; round < rounds; round++) {
    for (const peer of round % 2 === 0 ? [davit, etcd] : [etcd, davit]) {
      const milliseconds = await lastNotifiedMs(peer);
      // The first round warms up.
      if (round >= 0) found[peer.name].push(milliseconds);
    }
  }
  return { davitMs: median(found.davit), etcdMs: median(found.etcd), ratio: pairedRatio(found.davit, found.etcd) };
}

async function lastNotifiedMs({ url }: Peer): Promise<number> {
  const writer = await RawConnection.open(url);
  const watchers = await Promise.all(Array.from({ length: watcherCount }, () => RawConnection.open(url)));
  try {
    for (const watcher of watchers) watcher.send(requestText("GET", "/v2/keys/watched?wait=true"));
    // Both send the head of the answer once the watch stands.
    await Promise.all(watchers.map((watcher) => watcher.received((text) => text.includes("\r\n\r\n"))));
    const startMs = performance.now();
    writer.send(requestText("PUT", "/v2/keys/watched", "value=x"));
    await Promise.all(watchers.map((watcher) => watcher.received((text) => text.includes('"action":"set"'))));
    return performance.now() - startMs;
  } finally {
    for (const connection of [writer, ...watchers]) connection.close();
  }
}
