/** Finds the config for a machine's request, and what the access log records of it. */

import type { ConfigName, ConfigRequest, MachineConfig } from "../../boot/boot-configs.ts";
import { BootError } from "../../boot/boot-error.ts";
import type { Soon } from "../../lib/soon.ts";
import { labelsFromQuery } from "../../model/labels.ts";
import type { Rendered } from "../../render/core/rendered.ts";
import type { RequestedMachine } from "./access-log.ts";

/** The route of every generic part: logs and metrics have one name, whatever part a stranger asks for. */
export const partRoute = "/generic/:name";

/** Makes machines' configs; returns a promise for a slow one. */
export interface Configs {
  /** @throws {BootError} */
  render(name: ConfigName, request: ConfigRequest): Soon<MachineConfig>;
}

export interface MachineQuestion extends Omit<ConfigRequest, "labels"> {
  readonly name: ConfigName;
}

/**
 * The config that a machine asks for.
 * @param report receives who asked and what was found, as far as known; also for a refusal.
 * @throws {BootError | LabelError}
 */
export function answerMachine(
  configs: Configs,
  { name, rawQuery, userAgent, client }: MachineQuestion,
  report: (machine: RequestedMachine) => void,
): Soon<Rendered> {
  const labels = labelsFromQuery(rawQuery);
  const found = ({ rendered, group, profile }: MachineConfig) => {
    report({ labels, rawQuery, group, profile });
    return rendered;
  };
  const refused = (error: unknown): never => {
    report(
      error instanceof BootError
        ? { labels, rawQuery, group: error.group, profile: error.profile, refusal: error.reason }
        : { labels, rawQuery },
    );
    throw error;
  };
  try {
    const config = configs.render(name, { labels, rawQuery, userAgent, client });
    return config instanceof Promise ? config.then(found, refused) : found(config);
  } catch (error) {
    return refused(error);
  }
}
