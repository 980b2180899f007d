/** The store's listener as `davit serve` has it, over a store of a test. */

import { StoreService } from "../../src/app/store/store-service.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { readServeConfig } from "../../src/options/serve.ts";
import type { Store } from "../../src/store/store.ts";
import { silentLog } from "../helpers/test-store.ts";

/** @param options the data directory among them. @param said gets each warning and error of the log. */
export async function listenForKeys(store: Store, options: readonly string[], said: string[] = []) {
  const say = (data: object, message: string) => said.push(`${message} ${JSON.stringify(data)}`);
  const log = { ...silentLog, warn: say, error: say, child: () => log };
  const paths = { isDirectory: () => true, isFile: () => true };
  const config = readServeConfig(["--manifests", "m", "--store-address", "127.0.0.1:0", ...options], {}, paths);
  const metrics = createMetrics("1");
  const isReady = () => true;
  const provenAtMs = () => undefined;
  const clock = systemClock;
  const service = new StoreService({ config, store, log, clock, metrics, isReady, provenAtMs });
  try {
    return { service, port: (await service.listen())?.port ?? 0 };
  } catch (error) {
    await service.stop();
    throw error;
  }
}
