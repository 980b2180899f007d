/** Finds who changed the spec of an object last, by the API server's record of field managers. Pure. */

import { compareBytes } from "../../../lib/order.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../model/json.ts";

/** A field manager: the name that a client gives itself. The API server does not verify it. */
export interface SpecManager {
  readonly manager: string;
  /** `Apply` or `Update`. */
  readonly operation?: string;
  /** When it changed its fields last, RFC 3339 with seconds. */
  readonly managedAt?: string;
}

/**
 * Returns the manager of fields of the spec that changed last; undefined if the object has no record. A manager that
 * only removed fields has none, and one that changed only the status or metadata does not count.
 */
export function specManager({ metadata }: JsonObject): SpecManager | undefined {
  const entries = isJsonObject(metadata) && Array.isArray(metadata.managedFields) ? metadata.managedFields : [];
  const managers = entries.flatMap((entry: JsonValue) => managerIn(entry) ?? []);
  // The times are in UTC and of equal length. The sort is stable, so the last of equals wins.
  return managers.toSorted((a, b) => compareBytes(a.managedAt ?? "", b.managedAt ?? "")).at(-1);
}

function managerIn(entry: JsonValue): SpecManager | undefined {
  if (!isJsonObject(entry)) return undefined;
  const { manager, operation, time, subresource, fieldsV1 } = entry;
  if (typeof manager !== "string" || (subresource ?? "") !== "") return undefined;
  if (!isJsonObject(fieldsV1) || !Object.hasOwn(fieldsV1, "f:spec")) return undefined;
  return {
    manager,
    ...(typeof operation === "string" && { operation }),
    ...(typeof time === "string" && { managedAt: time }),
  };
}
