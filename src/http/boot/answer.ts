/** Finds the config that a machine asks for, and reports the result to the access log. */

import type { ConfigName, ConfigRequest, MachineConfig } from "../../boot/boot-configs.ts";
import { BootError } from "../../boot/core/boot-error.ts";
import type { Soon } from "../../lib/soon.ts";
import { labelsFromQuery } from "../../model/labels.ts";
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

export interface MachineQuestion extends Omit<ConfigRequest, "labels"> {
  readonly name: ConfigName;
}

/**
 * Returns the config that a machine asks for.
 * @param report receives the machine and the result, also for a refusal. It is not called for a LabelError.
 * @throws {BootError | LabelError}
 */
export function answerMachine(
  configs: Configs,
  { name, ...asked }: MachineQuestion,
  report: (machine: RequestedMachine) => void,
): Soon<Rendered> {
  const { rawQuery } = asked;
  const labels = labelsFromQuery(rawQuery);
  const found = ({ rendered, group, profile }: MachineConfig) => {
    report({ labels, rawQuery, group, profile, rendered });
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
    const config = configs.render(name, { ...asked, labels });
    return config instanceof Promise ? config.then(found, refused) : found(config);
  } catch (error) {
    return refused(error);
  }
}
