/** From a machine's request to its config, and to what the access log tells of it. */

import type { BootConfigs, ConfigName, ConfigRequest } from "../boot/boot-configs.ts";
import { BootError } from "../boot/boot-error.ts";
import { labelsFromQuery } from "../model/labels.ts";
import type { Rendered } from "../render/rendered.ts";
import type { RequestedMachine } from "./access-log.ts";

/** The route of every generic part: one, so that logs and metrics have one name for whatever a stranger asks for. */
export const partRoute = "/generic/:name";

export interface MachineQuestion extends Omit<ConfigRequest, "labels"> {
  readonly name: ConfigName;
}

/**
 * The config that a machine asks for.
 * @param tell is told who asked and what was found, as far as it is known; also of a refusal.
 * @throws {BootError | LabelError}
 */
export function answerMachine(
  configs: Pick<BootConfigs, "render">,
  { name, rawQuery, userAgent }: MachineQuestion,
  tell: (machine: RequestedMachine) => void,
): Rendered {
  const labels = labelsFromQuery(rawQuery);
  try {
    const { rendered, group, profile } = configs.render(name, { labels, rawQuery, userAgent });
    tell({ labels, rawQuery, group, profile });
    return rendered;
  } catch (error) {
    tell(
      error instanceof BootError
        ? { labels, rawQuery, group: error.group, profile: error.profile }
        : { labels, rawQuery },
    );
    throw error;
  }
}
