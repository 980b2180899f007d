/** How long one PUT takes to reach the last of 1,000 who watch its key, by long poll, beside etcd. */

import { cpuMicrosecondsOf } from "./process-usage.ts";
import { RawConnection, requestText } from "./raw-client.ts";
import type { AddFigure } from "./run.ts";
import type { Peer } from "./store-peers.ts";
import { takeTurns } from "./turns.ts";

export const watcherCount = 1_000;

export async function measureWatch(peers: readonly [Peer, Peer], rounds: number, add: AddFigure): Promise<void> {
  for (const peer of peers) await lastNotified(peer);
  const [davit, etcd] = peers;
  const found = await takeTurns(peers, rounds, lastNotified);
  const sides = (of: (notified: Notified) => number) => ({ davit: found(davit).map(of), beside: found(etcd).map(of) });
  const cpu = { unit: "ms", ...sides(({ cpuMs }) => cpuMs) };
  const last = { unit: "ms", ...sides(({ wallMs }) => wallMs), goal: { of: "ratio", atMost: 1 } as const };
  add({
    what: "a PUT reaches the last watcher after",
    peer: "etcd",
    ...last,
    cpu,
    headline: "a PUT reaches the last of 1,000 watchers after",
  });
}

interface Notified {
  readonly wallMs: number;
  /** Processor time of the server, without the requests of the watchers. */
  readonly cpuMs: number;
}

async function lastNotified({ url, pid }: Peer): Promise<Notified> {
  const writer = await RawConnection.open(url);
  const watchers = await Promise.all(Array.from({ length: watcherCount }, () => RawConnection.open(url)));
  try {
    for (const watcher of watchers) watcher.send(requestText("GET", "/v2/keys/watched?wait=true"));
    // Both send the head of the answer once the watch stands.
    await Promise.all(watchers.map((watcher) => watcher.received((text) => text.includes("\r\n\r\n"))));
    const [startMs, startCpu] = [performance.now(), cpuMicrosecondsOf(pid)];
    writer.send(requestText("PUT", "/v2/keys/watched", "value=x"));
    await Promise.all(watchers.map((watcher) => watcher.received((text) => text.includes('"action":"set"'))));
    return { wallMs: performance.now() - startMs, cpuMs: (cpuMicrosecondsOf(pid) - startCpu) / 1_000 };
  } finally {
    for (const connection of [writer, ...watchers]) connection.close();
  }
}
