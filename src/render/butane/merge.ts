/** Merges configs of Ignition by its rules: an entry of the child replaces the members of the parent's entry. */

import { isJsonObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import { isList } from "../core/values.ts";

/** The member that names an entry, by the name of its list. */
const keys: Readonly<Record<string, string>> = {
  disks: "device",
  raid: "name",
  filesystems: "device",
  files: "path",
  directories: "path",
  links: "path",
  luks: "name",
  units: "name",
  dropins: "name",
  users: "name",
  groups: "name",
  tang: "url",
  httpHeaders: "name",
  merge: "source",
  certificateAuthorities: "source",
};

/** Lists whose entries may repeat. */
const repeatable: ReadonlySet<string> = new Set(["options", "mountOptions", "append"]);

/** Returns what names an entry of a list; undefined if the entry has no name, or may repeat. */
export function keyOf(list: string, entry: JsonValue | undefined): JsonValue | undefined {
  if (repeatable.has(list)) return undefined;
  if (!isJsonObject(entry)) return entry;
  // A partition without a number is found by its label.
  if (list === "partitions") return entry.number ? `number ${entry.number}` : entry.label && `label ${entry.label}`;
  const key = keys[list];
  return key === undefined ? undefined : entry[key];
}

/** Returns a config with the members of both. Lists keep the order of the parent. */
export function merged(parent: JsonObject, child: JsonObject): JsonObject {
  const both = Object.entries(parent).flatMap(([name, value]) =>
    child[name] === undefined ? [] : [[name, mergedValue(name, value, child[name])] as const],
  );
  return { ...parent, ...child, ...Object.fromEntries(both) };
}

function mergedValue(name: string, parent: JsonValue, child: JsonValue): JsonValue {
  if (isJsonObject(parent) && isJsonObject(child)) return merged(parent, child);
  return isList(parent) && isList(child) ? mergedList(name, parent, child) : child;
}

function mergedList(name: string, parent: readonly JsonValue[], child: readonly JsonValue[]): readonly JsonValue[] {
  const own = new Map(child.map((entry) => [keyOf(name, entry), entry]));
  const taken = new Set<JsonValue>();
  const first = parent.map((entry) => {
    const key = keyOf(name, entry);
    const match = key === undefined ? undefined : own.get(key);
    if (match === undefined) return entry;
    taken.add(match);
    return mergedValue(name, entry, match);
  });
  return [...first, ...child.filter((entry) => !taken.has(entry))];
}
