/** Finds the config that a machine asks for, and reports the result to the access log. */

import type { ConfigName, ConfigRequest, MachineConfig } from "../../boot/boot-configs.ts";
import { BootError } from "../../boot/core/boot-error.ts";
import type { Soon } from "../../lib/soon.ts";
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

/**
 * Returns the config that a machine asks for.
 * @param visit gets the machine and the result, also for a refusal.
 * @throws {BootError}
 */
export function answerMachine(
  configs: Configs,
  name: ConfigName,
  request: ConfigRequest,
  visit: MachineVisit,
): Soon<Rendered> {
  try {
    const config = configs.render(name, request);
    if (!(config instanceof Promise)) return found(config, request, visit);
    return config.then(
      (made) => found(made, request, visit),
      (error) => refused(error, request, visit),
    );
  } catch (error) {
    return refused(error, request, visit);
  }
}

function found({ rendered, group, profile }: MachineConfig, request: ConfigRequest, visit: MachineVisit): Rendered {
  const { labels, rawQuery } = request;
  visit.machine = { labels, rawQuery, group, profile, rendered };
  return rendered;
}

function refused(error: unknown, { labels, rawQuery }: ConfigRequest, visit: MachineVisit): never {
  visit.machine =
    error instanceof BootError
      ? { labels, rawQuery, group: error.group, profile: error.profile, refusal: error.reason }
      : { labels, rawQuery };
  throw error;
}
