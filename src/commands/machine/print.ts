/** Prints a change of an object instead of making it: as a kubectl command, and as lines for a file. */

import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { nameOf, type ObjectPlace } from "./cluster.ts";

/** Returns the text for a change of `spec`. */
export function printedPatch(place: ObjectPlace, spec: JsonObject): string {
  const { kind, namespace, name } = place;
  const resource = kind === "Group" ? "groups.davit.dev" : "machines.davit.dev";
  const patch = JSON.stringify({ spec });
  return [
    `kubectl patch ${resource} ${name} --namespace ${namespace} --type merge --patch '${patch}'`,
    "",
    `# or in the file of ${nameOf(place)}:`,
    "spec:",
    ...yamlLines(spec, "  "),
    "",
  ].join("\n");
}

/** A text in quotes is a text in YAML, too: a ledger's id may look like a number. */
function yamlLines(object: JsonObject, indent: string): readonly string[] {
  return Object.entries(object).flatMap(([name, value]) =>
    isJsonObject(value)
      ? [`${indent}${name}:`, ...yamlLines(value, `${indent}  `)]
      : [`${indent}${name}: ${JSON.stringify(value)}`],
  );
}
