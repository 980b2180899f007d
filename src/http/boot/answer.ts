/** Finds the config that a machine asks for, reports the result to the access log, and counts refusals by reason. */

import { hash } from "node:crypto";
import type { ConfigName, ConfigRequest, MachineConfig } from "../../boot/boot-configs.ts";
import { BootError } from "../../boot/core/boot-error.ts";
import type { NearMisses } from "../../boot/explaining/near-misses.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { after, rescued, type Soon } from "../../lib/soon.ts";
import { isLoader } from "../../model/objects/profile.ts";
import { type BootRefusal, bootRefusals } from "../../model/refusals.ts";
import type { Rendered } from "../../render/core/rendered.ts";
import type { RequestedMachine } from "./access-log.ts";

/**
 * The one route of all generic parts. Metrics use it as the name, so a stranger cannot add names by asking for parts.
 */
export const partRoute = "/generic/:name";

/** Makes machines' configs. A slow config is a promise. */
export interface Configs {
  /** @throws {BootError} */
  render(name: ConfigName, request: ConfigRequest): Soon<MachineConfig>;
}

/** Where the machine and the result of its question go, for the access log. */
export interface MachineVisit {
  machine: RequestedMachine | undefined;
}

/** Called for each refusal. */
export type RefusalSink = (refusal: BootError, request: ConfigRequest) => void;

/**
 * Returns the config that a machine asks for.
 * @param visit gets the machine and the result, also for a refusal.
 * @throws {BootError}
 */
export function answerMachine(
  { configs, onRefusal }: { readonly configs: Configs; readonly onRefusal?: RefusalSink | undefined },
  name: ConfigName,
  request: ConfigRequest,
  visit: MachineVisit,
): Soon<Rendered> {
  return rescued(
    () => after(configs.render(name, request), (config) => found(name, config, request, visit)),
    (error) => {
      const { labels, rawQuery } = request;
      visit.machine = { labels, rawQuery };
      if (error instanceof BootError) {
        const { group, profile, reason, asset } = error;
        visit.machine = { labels, rawQuery, group, profile, refusal: reason, missing: asset };
        onRefusal?.(error, request);
      }
      throw error;
    },
  );
}

export interface RefusalCounterOptions {
  readonly metrics: Pick<Metrics, "bootRefusals">;
  readonly nearMisses: Pick<NearMisses, "report">;
}

/** Returns a sink that counts refusals by reason, and reports machines that match no Group to `nearMisses`. */
export function refusalCounter({ metrics, nearMisses }: RefusalCounterOptions): RefusalSink {
  const counters = new Map<BootRefusal, { inc(): void }>();
  for (const reason of Object.keys(bootRefusals) as BootRefusal[]) {
    metrics.bootRefusals.inc({ reason }, 0);
    // The series is found once, because finding it by its label costs more than counting.
    counters.set(reason, metrics.bootRefusals.labels({ reason }));
  }
  return ({ reason }, { labels }) => {
    counters.get(reason)?.inc();
    if (reason === "noMatch") nearMisses.report(labels);
  };
}

function found(
  name: ConfigName,
  { rendered, group, profile }: MachineConfig,
  request: ConfigRequest,
  visit: MachineVisit,
): Rendered {
  const { labels, rawQuery } = request;
  const scriptSha256 = isLoader(name) ? digestOf(rendered) : undefined;
  visit.machine = { labels, rawQuery, group, profile, scriptSha256 };
  return rendered;
}

/** The digests of kept texts: a Group's script for iPXE is the same object for each of its machines. */
const digests = new WeakMap<Rendered, string>();

function digestOf(rendered: Rendered): string {
  const known = digests.get(rendered);
  if (known !== undefined) return known;
  const digest = hash("sha256", rendered.body);
  digests.set(rendered, digest);
  return digest;
}
