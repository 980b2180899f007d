/** davit's store as clients meet it: the whole listener over a log on disk, in this process, with nothing in it. */

import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StoreService } from "../../src/app/store/store-service.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { diskFiles } from "../../src/lib/files/files.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { readServeConfig } from "../../src/options/serve.ts";
import { openStore } from "../../src/store/open-store.ts";
import { lockDirectory } from "../../src/store/wal/lock.ts";
import type { TestServer } from "./keys-servers.ts";
import { silentLog } from "./test-store.ts";

/**
 * @param parent where its data directory is made, which goes with it.
 * @param args further options of `davit serve`, of the store's door.
 */
export async function startDavitStore(parent = tmpdir(), args: readonly string[] = []): Promise<TestServer> {
  const directory = await mkdtemp(join(parent, "davit-store-"));
  const shared = { clock: systemClock, log: silentLog };
  const store = await openStore({
    ...shared,
    directory,
    files: diskFiles,
    lock: lockDirectory,
    random: randomBytes,
    onDamage: "refuse",
  });
  const paths = { isDirectory: () => true, isFile: () => true };
  const config = readServeConfig(
    ["--manifests", "none", "--data-dir", directory, "--store-address", "127.0.0.1:0", ...args],
    {},
    paths,
  );
  const service = new StoreService({
    ...shared,
    config,
    store,
    metrics: createMetrics("1"),
    isReady: () => true,
    provenAtMs: () => undefined,
  });
  const listening = await service.listen();
  return {
    port: listening?.port ?? 0,
    stop: async () => {
      await service.stop();
      await store.stop();
      await rm(directory, { recursive: true });
    },
  };
}
