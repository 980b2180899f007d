/** Counts what machines are refused, by reason, and takes note of those that no Group matches. */

import type { BootConfigs } from "../boot/boot-configs.ts";
import { BootError, bootRefusals } from "../boot/boot-error.ts";
import type { NearMisses } from "../boot/near-misses.ts";
import type { Metrics } from "../lib/metrics.ts";

export interface WatchedConfigsOptions {
  readonly metrics: Pick<Metrics, "bootRefusals">;
  readonly nearMisses: Pick<NearMisses, "tell">;
}

/** The same configs and the same refusals. */
export function watchedConfigs(
  configs: Pick<BootConfigs, "render">,
  { metrics, nearMisses }: WatchedConfigsOptions,
): Pick<BootConfigs, "render"> {
  const counters = new Map<string, { inc(): void }>();
  for (const reason of Object.keys(bootRefusals)) {
    metrics.bootRefusals.inc({ reason }, 0);
    // Looking a series up by its label costs more than counting.
    counters.set(reason, metrics.bootRefusals.labels({ reason }));
  }
  return {
    render: (name, request) => {
      try {
        return configs.render(name, request);
      } catch (error) {
        if (error instanceof BootError) {
          counters.get(error.reason)?.inc();
          if (error.reason === "noMatch") nearMisses.tell(request.labels);
        }
        throw error;
      }
    },
  };
}
