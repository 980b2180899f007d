/** The OpenAPI document of an API server as JSON schemas for kubeconform: a file for each kind, and nothing else allowed. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { isJsonObject, type JsonObject, type JsonValue, parseJsonObject } from "../../src/model/json.ts";
import { objectsIn, within } from "./helm.ts";

// OpenAPI v2 has one type for each value; these take two.
const either: Readonly<Record<string, JsonObject>> = {
  "io.k8s.apimachinery.pkg.util.intstr.IntOrString": { type: ["integer", "string"] },
  "io.k8s.apimachinery.pkg.api.resource.Quantity": { type: ["number", "string"] },
};

/**
 * Writes `GROUP_VERSION_KIND.json`, the kind in lower case, for each kind.
 * @param openApi the text of `/openapi/v2`.
 */
export function writeSchemas(openApi: string, directory: string): void {
  const definitions = within(parseJsonObject(openApi) ?? {}, "definitions");
  const strict = new Map(Object.entries(definitions).map(([name, schema]) => [name, either[name] ?? closed(schema)]));
  for (const [name, schema] of Object.entries(definitions)) {
    const kinds = isJsonObject(schema) ? objectsIn(schema["x-kubernetes-group-version-kind"]) : [];
    const document = { $ref: `#/definitions/${name}`, definitions: Object.fromEntries(reached(name, strict)) };
    for (const { group, version, kind } of kinds) {
      // kubeconform says the version, too, where the core group has no name.
      const file = `${group || version}_${version}_${String(kind).toLowerCase()}.json`;
      writeFileSync(join(directory, file), JSON.stringify(document));
    }
  }
}

/** A schema that allows only the properties that it has. */
function closed(value: JsonValue | undefined): JsonValue {
  if (Array.isArray(value)) return value.map(closed);
  if (!isJsonObject(value)) return value ?? null;
  const copy = Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, closed(inner)]));
  const isOpen = value["x-kubernetes-preserve-unknown-fields"] === true || value.additionalProperties !== undefined;
  return isJsonObject(value.properties) && value.type !== undefined && !isOpen
    ? { ...copy, additionalProperties: false }
    : copy;
}

/** A definition and all that it refers to. */
function reached(name: string, definitions: ReadonlyMap<string, JsonValue>): ReadonlyMap<string, JsonValue> {
  const found = new Map<string, JsonValue>();
  const waiting = [name];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const schema = definitions.get(next);
    if (found.has(next) || schema === undefined) continue;
    found.set(next, schema);
    waiting.push(...[...JSON.stringify(schema).matchAll(/"#\/definitions\/([^"]+)"/g)].map(([, other = ""]) => other));
  }
  return found;
}
