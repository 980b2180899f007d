/**
 * Converts admitted Machines. Of a refused Machine only those parts count that make a machine wait: its identities and
 * `hold`. It approves and grants nothing, and its labels select nothing.
 */

import { isJsonObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import { isOwnUuid, isUuid, normalizeMac } from "../../model/labels/hardware-ids.ts";
import { identity, type MachineSpec } from "../../model/objects/machine.ts";
import type { SchemaFinding } from "./check.ts";
import { toInstallGrant } from "./installs.ts";
import { mayHold, objectOf, textEntries } from "./json-parts.ts";

/** Returns the spec of a Machine. */
export function toMachineSpec(spec: JsonObject): MachineSpec {
  const install = toInstallGrant(spec.install, "All");
  return {
    identities: identitiesIn(spec.identity),
    approved: spec.approved === true,
    hold: spec.hold === true,
    labels: textEntries(spec.labels),
    metadata: objectOf(spec.metadata),
    ...(install && { install }),
  };
}

/** Finds a uuid that many boards share. The CRD admits it: a rule with a list of them would be hard to extend. */
export function machineFindings({ identity: written }: JsonObject): readonly SchemaFinding[] {
  const { uuid } = objectOf(written);
  if (typeof uuid !== "string" || isOwnUuid(uuid.toLowerCase())) return [];
  const text = "is a UUID that many boards share, so it names no machine: remove it, and write macs";
  return [{ path: ["spec", "identity", "uuid"], isBeyondCrd: true, code: "broken-rule", text }];
}

/** Returns what counts of a refused Machine; undefined if no identity of it can be read. */
export function machineStandIn(spec: JsonValue | undefined): MachineSpec | undefined {
  const { identity: written, hold } = objectOf(spec);
  const identities = identitiesIn(written);
  if (identities.length === 0) return undefined;
  return { identities, approved: false, hold: mayHold(hold), labels: {}, metadata: {} };
}

/** Returns the readable identities, each once: `uuid/...` before `mac/...`. */
function identitiesIn(written: JsonValue | undefined): readonly string[] {
  const { uuid, macs } = isJsonObject(written) ? written : {};
  const own = typeof uuid === "string" && isUuid(uuid) && isOwnUuid(uuid.toLowerCase()) ? [uuid.toLowerCase()] : [];
  const addresses = (Array.isArray(macs) ? macs : []).flatMap((mac: JsonValue) =>
    typeof mac === "string" ? (normalizeMac(mac) ?? []) : [],
  );
  return [
    ...own.map((value) => identity("uuid", value)),
    ...[...new Set(addresses)].map((value) => identity("mac", value)),
  ];
}
