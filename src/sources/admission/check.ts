/**
 * Checks a value against a schema node as the API server does: it prunes nulls of declared fields, fills in defaults,
 * checks the schema, and only then checks the CEL rules. Findings use davit's own words: messages of ajv and CEL never
 * leave this file, because they may quote the value.
 */

import { Environment } from "@marcbachmann/cel-js";
import type { ErrorObject } from "ajv";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import type { FindingCode } from "../../model/objects/findings.ts";
import { type SchemaNode, unknownFieldText } from "./schema.ts";
import { validatorOf } from "./validator.ts";

/** One mistake in a document. */
export interface SchemaFinding {
  /** Names and list positions from the document's root to the place. */
  readonly path: readonly string[];
  /** True if the path ends in an undeclared field. That name is the user's text, so messages do not show it. */
  readonly isUnknownField?: boolean;
  readonly code: FindingCode;
  /** True if only davit makes this check. Then the finding does not suggest that the cluster's CRD is outdated. */
  readonly isBeyondCrd?: true;
  /** What is wrong and what to do. */
  readonly text: string;
}

/** The value with its defaults, or its mistakes. */
type Checked =
  | { readonly kind: "good"; readonly value: JsonValue }
  | { readonly kind: "bad"; readonly findings: readonly SchemaFinding[] };

export type Check = (value: JsonValue) => Checked;

/** Returns a check that compiles at its first use, and throws then if a rule does not compile: a bug in davit. */
export function compileCheck(node: SchemaNode): Check {
  let compiled: Check | undefined;
  return (value) => {
    compiled ??= compile(node);
    return compiled(value);
  };
}

function compile(node: SchemaNode): Check {
  const validate = validatorOf(node.json);
  const rules = compileRules(node);
  return (value) => {
    const pruned = pruneNulls(node, value);
    if (!validate(pruned)) {
      return { kind: "bad", findings: (validate.errors ?? []).map((error) => toFinding(node, error)) };
    }
    const findings = rules(pruned, []);
    return findings.length === 0 ? { kind: "good", value: pruned } : { kind: "bad", findings };
  };
}

const typeTexts: Readonly<Record<string, string>> = {
  string: "must be text: write it in quotes",
  integer: "must be a whole number",
  boolean: "must be true or false",
  array: 'must be a list: begin each entry with "- "',
  object: "must be an object: write its fields below it, indented",
};

function toFinding(node: SchemaNode, error: ErrorObject): SchemaFinding {
  const path = error.instancePath.split("/").slice(1).map(unescapePointer);
  const limit = String(error.params.limit);
  switch (error.keyword) {
    case "required":
      return {
        path: [...path, String(error.params.missingProperty)],
        code: "missing-field",
        text: "is missing: add it",
      };
    case "additionalProperties":
      return {
        path: [...path, String(error.params.additionalProperty)],
        isUnknownField: true,
        code: "unknown-field",
        text: unknownField(nodeAt(node, path), String(error.params.additionalProperty)),
      };
    case "type":
      return { path, code: "wrong-type", text: typeTexts[String(error.params.type)] ?? otherFinding.text };
    case "enum":
      return { path, code: "unknown-choice", text: `must be one of ${error.params.allowedValues.join(", ")}` };
    case "pattern":
      return { path, ...(patternFindings[String(error.params.pattern)] ?? otherFinding) };
    case "minLength":
      return { path, code: "empty-value", text: "is empty: write a value, or remove the field" };
    case "maxLength":
      return { path, code: "too-long", text: `is longer than ${limit} characters: shorten it` };
    case "maxItems":
      return { path, code: "too-long", text: `has more than ${limit} entries: shorten the list` };
    case "maxProperties":
      return { path, code: "too-long", text: `has more than ${limit} names: remove some` };
    case "minimum":
      return { path, code: "out-of-range", text: `must be ${limit} or more` };
    case "maximum":
      return { path, code: "out-of-range", text: `must be ${limit} or less` };
    default:
      return { path, ...otherFinding };
  }
}

const otherFinding = {
  code: "broken-rule",
  text: "is not valid here: compare it with the field's description in docs/reference/crds",
} as const;

/** Quotes only declared fields, never the unknown one. */
function unknownField(node: SchemaNode | undefined, name: string): string {
  const fields = [...(node?.properties ?? [])];
  const [parent] = fields.find(([, child]) => child.properties.has(name)) ?? [];
  const meant = nearestWord(
    name,
    fields.map(([field]) => field),
  );
  const hint = parent === undefined ? meant && `, probably meant as ${meant}` : `: write ${name} below ${parent}, or`;
  const text = unknownFieldText(fields.map(([field]) => field));
  return hint === undefined ? text : text.replace(hint.endsWith("or") ? ":" : /(?=:)/, hint);
}

function nodeAt(node: SchemaNode, path: readonly string[]): SchemaNode | undefined {
  return path.reduce<SchemaNode | undefined>((at, name) => at && childOf(at, name), node);
}

/** Returns the schema of an object's field, a map's value or a list's element. */
function childOf({ properties, values, items }: SchemaNode, name: string): SchemaNode | undefined {
  return properties.get(name) ?? values ?? items;
}

function unescapePointer(segment: string): string {
  return segment.replaceAll("~1", "/").replaceAll("~0", "~");
}

type RuleCheck = (value: JsonValue, path: readonly string[]) => readonly SchemaFinding[];

const environment = new Environment().registerVariable("self", "dyn");

function compileRules(node: SchemaNode): RuleCheck {
  const own = node.rules.map(({ rule, message }) => ({ holds: environment.parse(rule), message }));
  const properties = new Map([...node.properties].map(([name, child]) => [name, compileRules(child)]));
  const values = node.values && compileRules(node.values);
  const items = node.items && compileRules(node.items);
  return (value, path) => {
    const doubles = node.listKeys.length === 0 ? [] : doubleFindings(node.listKeys, value, path);
    const self = own.length === 0 ? undefined : celValue(node, value);
    const failed = own.filter(({ holds }) => !isTrue(holds, self)).map(({ message }) => ruleFinding(path, message));
    const found = [...doubles, ...failed];
    return [...found, ...children(value).flatMap(([name, child]) => below(name)?.(child, [...path, name]) ?? [])];
  };

  function below(name: string): RuleCheck | undefined {
    return properties.get(name) ?? values ?? items;
  }
}

/** Finds list entries whose keys equal those of an earlier entry. The API server refuses them as `Duplicate value`. */
function doubleFindings(keys: readonly string[], value: JsonValue, path: readonly string[]): readonly SchemaFinding[] {
  const known = new Set<string>();
  return children(value).flatMap(([at, entry]) => {
    const id = JSON.stringify(keys.map((key) => (isJsonObject(entry) ? entry[key] : undefined)));
    if (known.size !== known.add(id).size) return [];
    const text = `has the ${keys.join(" and ")} of an entry above: give it one of its own`;
    return [{ path: [...path, at], code: "duplicate-entry", text }];
  });
}

function ruleFinding(path: readonly string[], text: string): SchemaFinding {
  return { path, code: "broken-rule", text };
}

/**
 * Converts a value for the rules, which see only declared fields. Objects become Maps, because the evaluator reads an
 * object's type from its property `constructor`. A label may have that name.
 */
function celValue(node: SchemaNode, value: JsonValue): unknown {
  const { properties, items, values } = node;
  if (Array.isArray(value)) return items === undefined ? value : value.map((entry) => celValue(items, entry));
  if (!isJsonObject(value)) return value;
  const fields = Object.entries(value).flatMap(([name, child]): [string, unknown][] => {
    const schema = properties.get(name) ?? values;
    // The API server's rules treat a nullable field with the value null as absent.
    const isAbsent = schema === undefined || (child === null && properties.has(name));
    return isAbsent ? [] : [[name, celValue(schema, child)]];
  });
  return new Map(fields);
}

function isTrue(holds: (context: { readonly self: unknown }) => unknown, self: unknown): boolean {
  try {
    return holds({ self }) === true;
  } catch {
    // As on the API server, a rule that cannot be evaluated refuses the object. The error's text quotes values, so
    // davit drops it.
    return false;
  }
}

function children(value: JsonValue): readonly (readonly [string, JsonValue])[] {
  return typeof value === "object" && value !== null ? Object.entries(value) : [];
}

/**
 * Returns a copy without the declared fields that are null, unless they are nullable. The API server does the same
 * before it fills in defaults. In a map of free keys the API server drops nulls, too. davit keeps the nulls of such a
 * map, and the schema then refuses them. Otherwise a key that a user wrote would be lost.
 */
function pruneNulls(node: SchemaNode, value: JsonValue): JsonValue {
  const { items } = node;
  if (Array.isArray(value)) return items === undefined ? value : value.map((entry) => pruneNulls(items, entry));
  if (!isJsonObject(value)) return value;
  return pruneObject(node, value);
}

function pruneObject({ properties, values }: SchemaNode, value: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, child]) => child !== null || isNullable(properties.get(name)))
      .map(([name, child]) => {
        const schema = properties.get(name) ?? values;
        return [name, schema === undefined ? child : pruneNulls(schema, child)];
      }),
  );
}

/** True for a nullable field, and for an undeclared name: the check must see that name to refuse it. */
function isNullable(field: SchemaNode | undefined): boolean {
  return field === undefined || field.json.nullable === true;
}

interface PatternFinding {
  readonly code: FindingCode;
  readonly text: string;
}

const bothEnds = "with a letter or digit at both ends";

/** The finding for each pattern of the CRDs. A test compares this table with the CRD files. */
export const patternFindings: Readonly<Record<string, PatternFinding>> = {
  "^[^\\x00-\\x1f\\x7f]+$": {
    code: "control-character",
    text: "has a control character, such as a line break: remove it",
  },
  "^[^\\x00-\\x08\\x0b-\\x1f\\x7f]+$": {
    code: "control-character",
    text: "has a control character other than line feed and tab, such as the carriage return of a Windows line end",
  },
  "^#!ipxe(\\n[^\\x00-\\x08\\x0b-\\x1f\\x7f]*)?$": {
    code: "invalid-script",
    text: "is no script: begin it with the line #!ipxe, and write no control character other than line feed and tab",
  },
  "^/([A-Za-z0-9_][-A-Za-z0-9_.+]*/)*[A-Za-z0-9_][-A-Za-z0-9_.+]*[.][Ee][Ff][Ii]$": {
    code: "broken-rule",
    text:
      "is no path of a loader: write it with / from the root of the EFI partition to its .efi file, such as " +
      "/EFI/debian/shimx64.efi, of letters, digits and ._+-, without backslashes, blanks and ..",
  },
  "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$": {
    code: "invalid-name",
    text: `is no name of an object: write lower-case letters, digits, hyphens and dots, ${bothEnds}`,
  },
  "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": {
    code: "invalid-name",
    text: `is no namespace: write lower-case letters, digits and hyphens, ${bothEnds}`,
  },
  "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$": {
    code: "invalid-name",
    text: `is no name of a part: write lower-case letters, digits, hyphens and dots, ${bothEnds}`,
  },
  "^[-._a-zA-Z0-9]+$": {
    code: "invalid-key",
    text: "is no key: write letters, digits, hyphens, underscores and dots",
  },
  "^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$": {
    code: "invalid-name",
    text: `is no name of a label: write letters, digits, hyphens, underscores and dots, ${bothEnds}`,
  },
  "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$": {
    code: "broken-rule",
    text: 'is no UUID: write one such as "4c4c4544-0042-3510-8052-b4c04f4e4a32"',
  },
  [[
    "^([0-9A-Fa-f]{2}((:[0-9A-Fa-f]{2}){5}|(:[0-9A-Fa-f]{2}){7}|(:[0-9A-Fa-f]{2}){19}",
    "|(-[0-9A-Fa-f]{2}){5}|(-[0-9A-Fa-f]{2}){7}|(-[0-9A-Fa-f]{2}){19})",
    "|[0-9A-Fa-f]{4}(([.][0-9A-Fa-f]{4}){2}|([.][0-9A-Fa-f]{4}){3}|([.][0-9A-Fa-f]{4}){9})",
    "|[0-9A-Fa-f]{12}|[0-9A-Fa-f]{16})$",
  ].join("")]: { code: "broken-rule", text: 'is no MAC address: write one such as "52:54:00:a1:9c:ae"' },
  "^(24h(0m0s)?|([1-9]|1[0-9]|2[0-3])h([1-5]?[0-9]m(0s)?)?|([1-9][0-9]{0,2}|1[0-3][0-9]{2}|14[0-3][0-9]|1440)m(0s)?)$":
    { code: "broken-rule", text: "is no duration of 1m to 24h: write hours and minutes, such as 2h, 90m or 1h30m" },
  "^([1-9][0-9]{0,3}h([1-5]?[0-9]m(0s)?)?|[1-9][0-9]{0,4}m(0s)?)$": {
    code: "broken-rule",
    text: "is no duration of 1m to 9999h59m: write hours and minutes, such as 720h or 90m",
  },
  "^[0-9a-f]{8}$": {
    code: "broken-rule",
    text: "is no id of a ledger: write 8 hexadecimal digits in quotes, as the condition Permitted shows them",
  },
  [[
    "^20[0-9]{2}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)",
    "|02-(0[1-9]|1[0-9]|2[0-9]))",
    "T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])$",
  ].join("")]: { code: "broken-rule", text: 'is no time of RFC 3339: write one such as "2026-12-01T18:00:00Z"' },
};
