/** Converts an answer to a machine into a sighting, which the machine's status shows. */

import { hash } from "node:crypto";
import type { MachineAnswer, RequestedMachine } from "../http/boot/access-log.ts";
import { identitiesOf } from "../model/machine.ts";
import type { MachineSighting } from "../model/sighting.ts";
import type { Rendered } from "../render/core/rendered.ts";

/** @param atMs Unix milliseconds. */
export function sightingOf(
  { labels, group, profile, refusal, rendered }: RequestedMachine,
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
    ...(isScript && rendered !== undefined && { script: { sha256: digestOf(rendered), atMs } }),
  };
}

/** The endpoints of boot scripts. Those of their signatures have other names. */
const scripts: ReadonlySet<string> = new Set(["ipxe", "grub"]);

/** The digests of kept texts: a Group's script for iPXE is the same object for each of its machines. */
const digests = new WeakMap<Rendered, string>();

function digestOf(rendered: Rendered): string {
  const known = digests.get(rendered);
  if (known !== undefined) return known;
  const digest = hash("sha256", rendered.body);
  digests.set(rendered, digest);
  return digest;
}
