/** Counts refusals by reason, and reports machines that match no Group to `NearMisses`. */

import { BootError } from "../../boot/core/boot-error.ts";
import type { NearMisses } from "../../boot/explaining/near-misses.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import type { Labels } from "../../model/labels/labels.ts";
import { bootRefusals } from "../../model/refusals.ts";
import type { Configs } from "./answer.ts";

export interface WatchedConfigsOptions {
  readonly metrics: Pick<Metrics, "bootRefusals">;
  readonly nearMisses: Pick<NearMisses, "report">;
}

/** Wraps `configs`: makes the same configs and throws the same refusals, but counts the refusals. */
export function watchedConfigs(configs: Configs, { metrics, nearMisses }: WatchedConfigsOptions): Configs {
  const counters = new Map<string, { inc(): void }>();
  for (const reason of Object.keys(bootRefusals)) {
    metrics.bootRefusals.inc({ reason }, 0);
    // The series is found once, because finding it by its label costs more than counting.
    counters.set(reason, metrics.bootRefusals.labels({ reason }));
  }
  const refused = (error: unknown, labels: Labels): never => {
    if (error instanceof BootError) {
      counters.get(error.reason)?.inc();
      if (error.reason === "noMatch") nearMisses.report(labels);
    }
    throw error;
  };
  return {
    render: (name, request) => {
      try {
        const config = configs.render(name, request);
        return config instanceof Promise ? config.catch((error) => refused(error, request.labels)) : config;
      } catch (error) {
        return refused(error, request.labels);
      }
    },
  };
}
