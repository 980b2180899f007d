/** Converts an answer to a machine into a sighting, which the machine's status shows. */

import type { RequestedMachine } from "../../http/boot/access-log.ts";
import type { MachineAnswer } from "../../http/boot/request-log.ts";
import { identitiesOf } from "../../model/objects/machine.ts";
import type { MachineSighting } from "../../model/sighting.ts";

/** @param atMs Unix milliseconds. */
export function sightingOf(
  { labels, group, profile, refusal, scriptSha256: sha256 }: RequestedMachine,
  { endpoint, status, isHead, address }: MachineAnswer,
  atMs: number,
): MachineSighting {
  const isScript = scripts.has(endpoint) && status === 200 && !isHead;
  return {
    identities: identitiesOf(labels),
    atMs,
    ...(address !== undefined && { address }),
    ...(group !== undefined && { group }),
    ...(profile !== undefined && { profile }),
    stage: endpoint,
    result: refusal ?? (status < 400 ? "served" : "failed"),
    ...(isScript && sha256 !== undefined && { script: { sha256, atMs } }),
  };
}

/** The endpoints of boot scripts. Those of their signatures have other names. */
const scripts: ReadonlySet<string> = new Set(["ipxe", "grub"]);
