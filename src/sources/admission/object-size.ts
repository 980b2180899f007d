/**
 * The size of an object as JSON, which is how a cluster stores it. The text of a file does not show it: aliases of YAML
 * repeat a value as often as they like, and the store and its followers would get each copy.
 */

import type { JsonValue } from "../../model/json.ts";
import type { SchemaFinding } from "./check.ts";

/** What etcd takes in one request unless it is configured otherwise. */
const maxObjectBytes = 1.5 * 1024 * 1024;

/** Finds an object of a file that no cluster would store. The value must be free of cycles, and not too deep. */
export function sizeFindings(value: JsonValue): readonly SchemaFinding[] {
  if (!isLargerThan(maxObjectBytes, value)) return [];
  const text = "is larger than 1.5 MiB as JSON, which no cluster stores: shorten it, or split it";
  return [{ path: [], code: "oversized-object", text }];
}

function isLargerThan(bytes: number, value: JsonValue): boolean {
  let leftBytes = bytes;
  const take = (part: JsonValue): boolean => {
    leftBytes -= typeof part === "object" && part !== null ? 2 : scalarBytes(part);
    if (leftBytes < 0) return false;
    if (Array.isArray(part)) return part.every((item) => take(item) && takeSeparators(1));
    if (typeof part !== "object" || part === null) return true;
    return Object.entries(part).every(([key, child]) => take(key) && take(child) && takeSeparators(2));
  };
  const takeSeparators = (count: number) => {
    leftBytes -= count;
    return leftBytes >= 0;
  };
  return !take(value);
}

function scalarBytes(value: string | number | boolean | null): number {
  return typeof value === "string" ? Buffer.byteLength(JSON.stringify(value)) : String(value).length;
}
