/** What many keys of 100 bytes cost beside etcd: memory after they were written, time to start again, memory then. */

import { cpuMicrosecondsOf, residentBytesOf } from "./process-usage.ts";
import { RawConnection, requestText, sendAll } from "./raw-client.ts";
import type { AddFigure } from "./run.ts";
import type { Peer } from "./store-peers.ts";

const valueForm = `value=${"x".repeat(100)}`;

/** @throws {Error} when a key is missing after the restart. */
export async function measureMemory(
  [davit, etcd]: readonly [Peer, Peer],
  keyCount: number,
  add: AddFigure,
): Promise<void> {
  const [own, other] = [await costsOf(davit, keyCount), await costsOf(etcd, keyCount)];
  const sides = (of: (costs: Costs) => number) => ({ peer: "etcd", davit: [of(own)], beside: [of(other)] });
  const most = (atMost: number) => ({ of: "ratio", atMost }) as const;
  add({ what: "written in", unit: "s", ...sides(({ loadSeconds }) => loadSeconds) });
  add({ what: "memory then", unit: "MiB", ...sides(({ loadedMiB }) => loadedMiB), goal: most(0.3) });
  const cpu = { unit: "s", davit: [own.restartCpuSeconds], beside: [other.restartCpuSeconds] };
  add({ what: "restart", unit: "s", ...sides(({ restartSeconds }) => restartSeconds), goal: most(0.6), cpu });
  add({ what: "memory then, restarted", unit: "MiB", ...sides(({ restartedMiB }) => restartedMiB), goal: most(0.8) });
}

interface Costs {
  readonly loadSeconds: number;
  readonly loadedMiB: number;
  readonly restartSeconds: number;
  readonly restartCpuSeconds: number;
  readonly restartedMiB: number;
}

async function costsOf(peer: Peer, keyCount: number): Promise<Costs> {
  const startMs = performance.now();
  await sendAll(peer.url, puts(keyCount));
  const loadSeconds = (performance.now() - startMs) / 1_000;
  const loadedMiB = residentBytesOf(peer.pid) / 2 ** 20;
  const restartSeconds = (await peer.restart()) / 1_000;
  const [restartCpuSeconds, restartedMiB] = [cpuMicrosecondsOf(peer.pid) / 1e6, residentBytesOf(peer.pid) / 2 ** 20];
  const connection = await RawConnection.open(peer.url);
  for (const at of [0, keyCount - 1]) await connection.ask(requestText("GET", targetOf(at)));
  connection.close();
  return { loadSeconds, loadedMiB, restartSeconds, restartCpuSeconds, restartedMiB };
}

function* puts(keyCount: number): Iterable<string> {
  for (let at = 0; at < keyCount; at++) yield requestText("PUT", targetOf(at), valueForm);
}

function targetOf(at: number): string {
  return `/v2/keys/many/${at % 1_000}/${at}`;
}
