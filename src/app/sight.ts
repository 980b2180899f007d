/** Converts an answer to a machine into a sighting, which the machine's status shows. */

import type { MachineAnswer, RequestedMachine } from "../http/boot/access-log.ts";
import { identitiesOf } from "../model/machine.ts";
import type { MachineSighting } from "../model/sighting.ts";

/** @param atMs Unix milliseconds. */
export function sightingOf(
  { labels, group, profile, refusal }: RequestedMachine,
  { endpoint, status, address }: MachineAnswer,
  atMs: number,
): MachineSighting {
  return {
    identities: identitiesOf(labels),
    atMs,
    ...(address !== undefined && { address }),
    ...(group !== undefined && { group }),
    ...(profile !== undefined && { profile }),
    stage: endpoint,
    result: refusal ?? (status < 400 ? "served" : "failed"),
  };
}
