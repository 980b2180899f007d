/** A listener with assets alone, in this process. */

import { type AssetsOptions, assetRoute } from "../../src/http/assets/assets.ts";
import { AssetDigests } from "../../src/http/assets/digests.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer } from "../../src/http/server.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { handlerOf } from "./handler-of.ts";

export interface AssetServer {
  readonly port: number;
  /** The value of a metric without labels. */
  metric(
    name: "davit_boot_asset_streams" | `davit_boot_asset_cache_${string}` | "davit_boot_asset_mismatches_total",
  ): Promise<number>;
  stop(): Promise<void>;
}

/** The machine's clock, an hour ahead: to it every file is old enough to be kept. */
export const laterClock: Pick<Clock, "nowMs" | "sleep"> = {
  nowMs: () => systemClock.nowMs() + 3_600_000,
  sleep: systemClock.sleep,
};

/** Starts it; the cache is 64 MiB, and takes every file, unless told otherwise. */
export async function startAssets(
  root: string | undefined,
  options: Partial<AssetsOptions> = {},
): Promise<AssetServer> {
  const log = createLog({ level: "silent", format: "json" });
  const metrics = createMetrics("test");
  const digests = new AssetDigests({ clock: systemClock, log, metrics });
  const assets = { root, cacheBytes: 64 * 1024 * 1024, digests, clock: laterClock, log, metrics, ...options };
  const handler = handlerOf([assetRoute(assets)]);
  const server = createServer({ log, clock: systemClock, answerError, handler });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  return {
    port,
    metric: async (name) => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(await metrics.text())?.[1]),
    stop: async () => {
      await server.close();
      await digests.stop();
    },
  };
}
