/** What many keys of 100 bytes cost beside etcd: memory after they were written, time to start again, memory then. */

import { residentBytesOf } from "./process-usage.ts";
import { RawConnection, requestText, sendAll } from "./raw-client.ts";
import type { Peer } from "./store-peers.ts";

export interface MemoryResult {
  readonly name: Peer["name"];
  readonly loadSeconds: number;
  readonly loadedBytes: number;
  readonly restartMs: number;
  readonly restartedBytes: number;
}

const valueForm = `value=${"x".repeat(100)}`;

/** @throws {Error} when a key is missing after the restart. */
export async function measureMemory(peer: Peer, keyCount: number): Promise<MemoryResult> {
  const startMs = performance.now();
  await sendAll(peer.url, puts(keyCount));
  const loadSeconds = (performance.now() - startMs) / 1_000;
  const loadedBytes = residentBytesOf(peer.pid);
  const restartMs = await peer.restart();
  const restartedBytes = residentBytesOf(peer.pid);
  const connection = await RawConnection.open(peer.url);
  for (const at of [0, keyCount - 1]) await connection.ask(requestText("GET", targetOf(at)));
  connection.close();
  return { name: peer.name, loadSeconds, loadedBytes, restartMs, restartedBytes };
}

function* puts(keyCount: number): Iterable<string> {
  for (let at = 0; at < keyCount; at++) yield requestText("PUT", targetOf(at), valueForm);
}

function targetOf(at: number): string {
  return `/v2/keys/many/${at % 1_000}/${at}`;
}
