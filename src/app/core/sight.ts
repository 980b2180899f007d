/** Converts a recorded request of a machine into a sighting, which the machine's status shows. */

import { reportEndpoint } from "../../http/boot/request-log.ts";
import type { Clock } from "../../lib/clock.ts";
import { identitiesOf } from "../../model/objects/machine.ts";
import type { MachineSighting } from "../../model/sighting.ts";
import type { SeenRequest } from "../../records/history/request.ts";

/** @returns undefined for a request that names no machine, and for a report: it asks for nothing that a Group gives. */
export function sightingOf(
  seen: SeenRequest,
  clock: Pick<Clock, "nowMs" | "monotonicMs">,
): MachineSighting | undefined {
  const { labels, endpoint, address, group, profile, refusal, status, script: sha256 } = seen;
  if (labels === undefined || endpoint === reportEndpoint) return undefined;
  const atMs = clock.nowMs() - clock.monotonicMs() + seen.startedMs + seen.durationMs;
  return {
    identities: identitiesOf(labels),
    atMs,
    address,
    ...(group !== undefined && { group }),
    ...(profile !== undefined && { profile }),
    stage: endpoint,
    result: refusal ?? (status < 400 ? "served" : "failed"),
    ...(sha256 !== undefined && { script: { sha256, atMs } }),
  };
}
