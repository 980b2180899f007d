/** A place for data directories whose durability no test looks at, and the reference in one of them. */

import { statfsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEtcd, type TestServer } from "./keys-servers.ts";

const memoryFolder = "/dev/shm";
// The reference takes room for its logs in advance.
const bytesEach = 512 * 1024 * 1024;

/**
 * A folder in memory, where a sync costs nothing, or the usual one when there is no room.
 * @param count how many data directories shall fit.
 */
export function quickFolder(count = 2): string {
  try {
    const { bavail, bsize } = statfsSync(memoryFolder);
    return bavail * bsize > count * bytesEach ? memoryFolder : tmpdir();
  } catch {
    // Not every system has one.
    return tmpdir();
  }
}

/** @param parent where its data directory is made, which goes with it. */
export async function startEtcdIn(parent: string): Promise<TestServer> {
  const directory = await mkdtemp(join(parent, "davit-etcd-"));
  const { port, stop } = await startEtcd(directory);
  return {
    port,
    stop: async () => {
      await stop();
      await rm(directory, { recursive: true });
    },
  };
}
