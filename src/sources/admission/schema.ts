/**
 * Converts the structural schemas of CRDs for `check.ts`: to a strict JSON schema for ajv, and a tree of rules for CEL.
 * A strict schema refuses undeclared fields, as the API server does for `kubectl apply`.
 */

import { parse } from "yaml";
import { assert } from "../../lib/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../model/json.ts";

interface Rule {
  /** A CEL expression over `self`. */
  readonly rule: string;
  /** The message for a value that breaks the rule. */
  readonly message: string;
}

/** One place of a schema. */
export interface SchemaNode {
  /** The JSON schema of this place and everything below it. */
  readonly json: JsonObject;
  readonly rules: readonly Rule[];
  readonly properties: ReadonlyMap<string, SchemaNode>;
  /** Elements of a list. */
  readonly items?: SchemaNode;
  /** Values of a map whose keys are free. */
  readonly values?: SchemaNode;
  /** For a list: no two elements may be equal in all of these fields. */
  readonly listKeys: readonly string[];
}

/** The spec of one kind of the group `davit.dev`. */
interface KindSchema {
  readonly kind: string;
  /** The structural schema of its spec, as in the CRD. */
  readonly spec: JsonValue;
}

/** Returns the schema of each version in a CRD, YAML or JSON. Throws for a malformed CRD, which is a bug in davit. */
export function readKindSchemas(crd: string): readonly KindSchema[] {
  const { spec } = objectOf(crd.startsWith("{") ? JSON.parse(crd) : parse(crd), "CRD");
  const { names, versions } = objectOf(spec, "CRD spec");
  const kind = textOf(objectOf(names, "names").kind);
  assert(Array.isArray(versions), "A CRD has a list of versions");
  return versions.map((version: unknown) => {
    const { schema } = objectOf(version, "version");
    const { properties } = objectOf(objectOf(schema, "schema").openAPIV3Schema, "openAPIV3Schema");
    return { kind, spec: objectOf(properties, "properties").spec ?? null };
  });
}

/** Converts one structural schema. Throws for a keyword that davit does not know, which is a bug in davit. */
export function toSchemaNode(schema: JsonValue): SchemaNode {
  const source = objectOf(schema, "schema");
  const unknown = Object.keys(source).find((key) => !(key in enforcedKeywords || ignoredKeywords.has(key)));
  assert(unknown === undefined, `The keyword ${unknown} of a schema is not enforced`);
  const properties = new Map(
    Object.entries(objectOf(source.properties ?? {}, "properties")).map(([name, child]) => [name, toSchemaNode(child)]),
  );
  const items = source.items === undefined ? undefined : toSchemaNode(source.items);
  const values = source.additionalProperties === undefined ? undefined : toSchemaNode(source.additionalProperties);
  const keepsUnknown = source["x-kubernetes-preserve-unknown-fields"] === true;
  const isOpen = keepsUnknown && source.properties === undefined;
  const kept = Object.entries(source).filter(([key]) => enforcedKeywords[key] === "as it is");
  const json: Record<string, JsonValue> = Object.fromEntries(kept);
  if (source.type === "object" && !isOpen) {
    json.properties = Object.fromEntries([...properties].map(([name, child]) => [name, child.json]));
    json.additionalProperties = values?.json ?? false;
  }
  if (items !== undefined) json.items = items.json;
  const listKeys = listKeysOf(source);
  const written = rulesOf(source);
  const rules = keepsUnknown && !isOpen ? withoutNamesRule(written, namesRule([...properties.keys()])) : written;
  return { json, rules, properties, listKeys, ...(items && { items }), ...(values && { values }) };
}

/**
 * Returns the rule by which an API server refuses undeclared fields. By default an API server drops such fields before
 * all checks, so the CRD makes the server keep them. The rule cannot name an undeclared field, but `size` counts it.
 * @param names the declared fields.
 */
export function namesRule(names: readonly string[]): Rule {
  const sorted = names.toSorted();
  const known = sorted.map((name) => `has(self.${name})`).join(", ");
  return { rule: `size(dyn(self)) == [${known}].filter(is, is).size()`, message: unknownFieldText(sorted) };
}

/** Returns the message for an object with an undeclared field. @param names the declared fields. */
export function unknownFieldText(names: readonly string[]): string {
  return `has a field that does not exist: remove it or correct its name to one of ${names.toSorted().join(", ")}`;
}

/** Removes the rule against undeclared fields: davit refuses them by the schema, which finds the exact field. */
function withoutNamesRule(rules: readonly Rule[], { rule, message }: Rule): readonly Rule[] {
  const others = rules.filter((each) => each.rule !== rule || each.message !== message);
  assert(others.length === rules.length - 1, `A CRD has the rule for names: ${rule}, with the message: ${message}`);
  return others;
}

/** The keywords that ajv or CEL enforce; every other keyword must be in `ignoredKeywords`. */
const enforcedKeywords: Readonly<Record<string, "as it is" | "rewritten">> = {
  type: "as it is",
  nullable: "as it is",
  required: "as it is",
  enum: "as it is",
  default: "as it is",
  pattern: "as it is",
  minLength: "as it is",
  maxLength: "as it is",
  minimum: "as it is",
  maximum: "as it is",
  maxItems: "as it is",
  maxProperties: "as it is",
  properties: "rewritten",
  items: "rewritten",
  additionalProperties: "rewritten",
  "x-kubernetes-validations": "rewritten",
  "x-kubernetes-preserve-unknown-fields": "rewritten",
  "x-kubernetes-list-map-keys": "rewritten",
};

/**
 * Keywords that davit need not enforce. Some are for people, others control how the API server merges. `format` is
 * among them because int32 fields have explicit bounds. `expressions.ts` checks what `allOf` and `not` say.
 */
const ignoredKeywords: ReadonlySet<string> = new Set([
  "description",
  "format",
  "allOf",
  "not",
  "x-kubernetes-list-type",
  "x-kubernetes-map-type",
]);

function rulesOf(source: JsonObject): readonly Rule[] {
  const rules = source["x-kubernetes-validations"] ?? [];
  assert(Array.isArray(rules), "Rules are a list");
  return rules.map((entry: unknown) => {
    const { rule, message } = objectOf(entry, "rule");
    return { rule: textOf(rule), message: textOf(message) };
  });
}

function listKeysOf(source: JsonObject): readonly string[] {
  const keys = source["x-kubernetes-list-map-keys"] ?? [];
  assert(Array.isArray(keys), "The keys of a list are a list");
  return keys.map(textOf);
}

function objectOf(value: unknown, what: string): JsonObject {
  assert(isJsonObject(value), `A CRD's ${what} is an object`);
  return value;
}

function textOf(value: unknown): string {
  assert(typeof value === "string", "A name in a CRD is text");
  return value;
}
