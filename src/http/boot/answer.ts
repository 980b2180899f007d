/** From a machine's request to its config, and to what the access log tells of it. */

import type { ConfigName, ConfigRequest, MachineConfig } from "../../boot/boot-configs.ts";
import { BootError } from "../../boot/boot-error.ts";
import type { Soon } from "../../lib/soon.ts";
import { labelsFromQuery } from "../../model/labels.ts";
import type { Rendered } from "../../render/rendered.ts";
import type { RequestedMachine } from "./access-log.ts";

/** The route of every generic part: one, so that logs and metrics have one name for whatever a stranger asks for. */
export const partRoute = "/generic/:name";

/** What machines' configs are asked for; a promise where one takes long to make. */
export interface Configs {
  /** @throws {BootError} */
  render(name: ConfigName, request: ConfigRequest): Soon<MachineConfig>;
}

export interface MachineQuestion extends Omit<ConfigRequest, "labels"> {
  readonly name: ConfigName;
}

/**
 * The config that a machine asks for.
 * @param tell is told who asked and what was found, as far as it is known; also of a refusal.
 * @throws {BootError | LabelError}
 */
export function answerMachine(
  configs: Configs,
  { name, rawQuery, userAgent, client }: MachineQuestion,
  tell: (machine: RequestedMachine) => void,
): Soon<Rendered> {
  const labels = labelsFromQuery(rawQuery);
  const found = ({ rendered, group, profile }: MachineConfig) => {
    tell({ labels, rawQuery, group, profile });
    return rendered;
  };
  const refused = (error: unknown): never => {
    tell(
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
